/**
 * How often running reflectors of kcp relisted, counted in kcp's own log at level 3. Each run of a
 * reflector begins with "Listing and watching", the first one right after "Starting reflector". The
 * client's log is counted, not the server's requests, so that the measure works for any server.
 */
export function countRelists(log: string): number {
  return Math.max(0, countListings(log) - count(log, 'Starting reflector'));
}

/** How many listings the log has. If it has none, 0 relists mean nothing. */
export function countListings(log: string): number {
  return count(log, 'Listing and watching');
}

function count(log: string, message: string): number {
  return log.split('\n').filter((line) => line.includes(`] "${message}"`)).length;
}
