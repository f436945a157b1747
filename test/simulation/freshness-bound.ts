/**
 * How old the objects of a cache may be while it reports them as current: this much more than the lag that it reports.
 *
 *   link     A report is sent once a second at most, behind the changes; a link whose other end has not answered for
 *            3 s counts as not connected. So each link may hide 3 s.
 *   pusher   Its own report arrives within 5 s.
 */
const linkMs = 3_000;
const pusherMs = 5_000;

/** `links`: between the cache and the one at which the shard's pusher is. */
export function freshnessBoundMs(links: number): number {
  return links * linkMs + pusherMs;
}
