/** Who sent a request, as told by a verified client certificate: CN and the Os. */
export type Caller = Readonly<{ user: string; groups: readonly string[] }>;

/** What a connection without a certificate, or with one that no trusted CA signed, is called. */
export const anonymous: Caller = { user: 'system:anonymous', groups: ['system:unauthenticated'] };

/** May do everything: what kcp's own clients hold (D8, P16). */
export function isMaster(caller: Caller): boolean {
  return caller.groups.includes('system:masters');
}
