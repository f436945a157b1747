/**
 * How old the objects of a cache may be while it reports them as current: this much more than the lag that it reports.
 *
 *   link     A report is sent once a second at most, behind the changes; a link whose other end has not answered for
 *            3 s counts as not connected. So each link may hide 3 s.
 *   pusher   Its own report arrives within 5 s. While nothing of it arrives it counts as there until its pings have gone unanswered for 20 s.
 */
const linkMs = 3_000;
const pusherMs = 5_000;
const silentMs = 20_000;

/** `links`: between the cache and the one at which the shard's pusher is. `mayBeSilent`: the network between pusher and cache may fail, or a cache on the way has stood still until now. */
export function freshnessBoundMs(links: number, { mayBeSilent }: Readonly<{ mayBeSilent: boolean }>): number {
  return links * linkMs + pusherMs + (mayBeSilent ? silentMs : 0);
}
