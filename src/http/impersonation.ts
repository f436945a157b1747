/**
 * Requests in another user's name (`kubectl --as`). A cache serves none. With the rights of the
 * connection's caller, the request could succeed although the other user lacks the right, and would
 * mislead its client. So a request with any such header is refused before anything is done.
 * https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
 */
import type { IncomingMessage } from 'node:http';
import { Refused, type Refusal } from '../domain/errors.js';

const family = 'impersonate-';

/** `name`: in lower case. */
export function isImpersonationHeader(name: string): boolean {
  return name.startsWith(family);
}

const extras = `${family}extra-`;
/** A part of the keys that kcp trusts: warrants, scopes, the logical cluster. */
const reserved = 'kcp.io';

/**
 * The first key of `Impersonate-Extra-…` that only kcp may grant (kcp#4226), undecoded; undefined
 * if there is none. `names`: in lower case. A key is checked as Go's url.PathUnescape decodes it,
 * byte by byte, and also undecoded, because Go uses the undecoded key if decoding fails.
 */
export function reservedExtra(names: Iterable<string>): string | undefined {
  for (const name of names) {
    if (!name.startsWith(extras)) continue;
    const key = name.slice(extras.length);
    const decoded = key.replaceAll(/%([0-9a-f]{2})/gi, (_, byte: string) => String.fromCharCode(Number.parseInt(byte, 16)));
    if ([key, decoded].some((text) => text.toLowerCase().includes(reserved))) return key;
  }
  return undefined;
}

/**
 * The refusal of a request in another user's name; 400 if the request names no user, as in
 * kube-apiserver. Undefined for a request in its caller's own name.
 */
export function impersonationRefused({ headers }: Pick<IncomingMessage, 'headers'>): Refused | undefined {
  const name = Object.keys(headers).find(isImpersonationHeader);
  if (name === undefined) return undefined;
  const message = `impersonation is not served here: leave out the header ${name}, and use the certificate of that user`;
  const refusal: Refusal = headers['impersonate-user'] ? { reason: 'Forbidden', message, details: {} } : { reason: 'BadRequest', message };
  return new Refused(refusal);
}
