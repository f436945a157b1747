/**
 * How old what a cache holds may be while it says that it is current: by so much more than the lag that it tells.
 *
 *   link     A status is sent once a second at most and crosses the link with the changes; a link whose other end has not answered for
 *            3 s counts as not connected. So of each link 3 s may have passed unseen.
 *   pusher   It sends its own status, and is heard, within 5 s.
 */
const linkMs = 3_000;
const pusherMs = 5_000;

/** `links`: between the cache and the one at which the shard's pusher is. */
export function freshnessBoundMs(links: number): number {
  return links * linkMs + pusherMs;
}
