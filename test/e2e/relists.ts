/**
 * How often a running reflector of kcp has listed again, by kcp's own log at level 3: each run of a reflector begins with
 * "Listing and watching", the first of them right behind "Starting reflector". What the client says of itself counts,
 * not what the server saw: the same question can be asked of any server.
 */
export function countRelists(log: string): number {
  return Math.max(0, countListings(log) - count(log, 'Starting reflector'));
}

/** Whether the log reports on listings at all: 0 relists in a log that is silent about them means nothing. */
export function countListings(log: string): number {
  return count(log, 'Listing and watching');
}

function count(log: string, message: string): number {
  return log.split('\n').filter((line) => line.includes(`] "${message}"`)).length;
}
