/** The reasons of a bye frame, each with its websocket close code. */
export const byeReasons = {
  /** The sender is stopping. The peer should reconnect, to another URL first. */
  shutdown: { code: 4001 },
  /** A newer term has the shard, or the shard was removed. The peer must not reconnect. */
  fenced: { code: 4002 },
  /** The same process has connected again, here or at another cache. */
  replaced: { code: 4003 },
  /** The peer sent an invalid frame, or one that is not allowed at this point. */
  protocol: { code: 4004 },
  /** The certificate does not allow the session. */
  forbidden: { code: 4005 },
  /** There is no common version, or this end does not serve the role. */
  unsupported: { code: 4006 },
  /** No further session is accepted, or the store cannot write. The peer should reconnect later. */
  unavailable: { code: 4007 },
  /** Nothing arrived for too long. */
  timeout: { code: 4008 },
  /** With this link, a cache would be above itself in the tree. Sent only to caches. */
  loop: { code: 4009 },
} as const;

export type ByeReason = keyof typeof byeReasons;

export function parseByeReason(text: string): ByeReason | undefined {
  return Object.hasOwn(byeReasons, text) ? (text as ByeReason) : undefined;
}

/** How long a pusher or child should wait before it reconnects, if the store could not serve it. */
export const unavailableRetryMs = 1_000;

export function reasonOfCode(code: number): ByeReason | undefined {
  return (Object.keys(byeReasons) as ByeReason[]).find((reason) => byeReasons[reason].code === code);
}
