/**
 * How far the true age of a cache's objects may exceed the lag that the cache reports.
 *
 *   link     A cache sends a report at most once a second, behind the changes. A link counts as
 *            not connected once its other end has not answered for 3 s. So each link may hide 3 s.
 *   pusher   Its own report arrives within 5 s. A silent pusher counts as connected until its pings
 *            have gone unanswered for 20 s.
 */
const linkMs = 3_000;
const pusherMs = 5_000;
const silentMs = 20_000;

/**
 * `links`: between this cache and the cache that the shard's pusher is connected to. `mayBeSilent`:
 * the network between pusher and cache may fail, or a cache on the way was paused until just now.
 */
export function freshnessBoundMs(links: number, { mayBeSilent }: Readonly<{ mayBeSilent: boolean }>): number {
  return links * linkMs + pusherMs + (mayBeSilent ? silentMs : 0);
}
