/**
 * How often a running reflector of kcp has relisted, by kcp's own log at level 3: each run of a reflector begins with
 * "Listing and watching", the first of them right after "Starting reflector". The client's log counts,
 * not what the server saw, so that the same measure works for any server.
 */
export function countRelists(log: string): number {
  return Math.max(0, countListings(log) - count(log, 'Starting reflector'));
}

/** Whether the log mentions listings at all: 0 relists in a log without them means nothing. */
export function countListings(log: string): number {
  return count(log, 'Listing and watching');
}

function count(log: string, message: string): number {
  return log.split('\n').filter((line) => line.includes(`] "${message}"`)).length;
}
