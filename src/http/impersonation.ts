/**
 * Requests in another user's name (`kubectl --as`). A cache serves none: answered as one of its connection's caller, such a request would do what the
 * other user may not, and its client would take that for the other's right. What asks by any header of the family is refused before anything is done.
 * https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
 */
import type { IncomingMessage } from 'node:http';
import { Refused, type Refusal } from '../domain/errors.js';

const family = 'impersonate-';

/** `name`: in lower case. */
export function asksInAnothersName(name: string): boolean {
  return name.startsWith(family);
}

/** As kube-apiserver, 400 where no user is named; undefined for a request in its caller's own name. */
export function impersonationRefused({ headers }: Pick<IncomingMessage, 'headers'>): Refused | undefined {
  const name = Object.keys(headers).find(asksInAnothersName);
  if (name === undefined) return undefined;
  const message = `impersonation is not served here: leave out the header ${name}, and ask with the certificate of the user`;
  const refusal: Refusal = headers['impersonate-user'] ? { reason: 'Forbidden', message, details: {} } : { reason: 'BadRequest', message };
  return new Refused(refusal);
}
