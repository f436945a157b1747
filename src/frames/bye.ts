/** Why a session ends: the reason of a bye frame and the websocket close code that goes with it. */
export const byes = {
  /** The side that sends it is stopping. Come back, to another URL first. */
  shutdown: { code: 4001 },
  /** A newer term has the shard, or it was removed. Do not come back. */
  fenced: { code: 4002 },
  /** The same process has connected again, here or at another cache. */
  replaced: { code: 4003 },
  /** What came is not a valid frame, or not one that may come now. */
  protocol: { code: 4004 },
  /** The certificate does not allow it. */
  forbidden: { code: 4005 },
  /** No common version, or a role that this end does not serve. */
  unsupported: { code: 4006 },
  /** No room for another session, or the store cannot write. Come back later. */
  unavailable: { code: 4007 },
  /** Nothing came for too long. */
  timeout: { code: 4008 },
  /** A cache would be above itself in the tree. Sent to caches alone. */
  loop: { code: 4009 },
} as const;

export type ByeReason = keyof typeof byes;

export function parseByeReason(text: string): ByeReason | undefined {
  return Object.hasOwn(byes, text) ? (text as ByeReason) : undefined;
}

/** When a pusher or a child may come back after the store could not serve it. */
export const unavailableRetryMs = 1_000;

const reasonsByCode = new Map<number, ByeReason>();
for (const reason of Object.keys(byes) as ByeReason[]) reasonsByCode.set(byes[reason].code, reason);

/** The reason that a close code stands for; undefined for any other code. */
export function reasonOfCode(code: number): ByeReason | undefined {
  return reasonsByCode.get(code);
}
