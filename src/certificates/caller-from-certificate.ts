/**
 * The caller at the other end of a TLS connection, and the shard or client for which it speaks.
 *
 * Only a certificate that a trusted CA signed names a caller. `authorized` alone is not enough:
 * Node also sets it for a resumed TLS 1.3 session without any certificate. Names are read from the
 * parsed subject. In the subject *string* a value with ',' '+' '=' or a line break could fake a
 * group.
 */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { anonymous, type Caller } from '../domain/caller.js';
import { attributeIds, extensionIds, extensionsOf, fieldsOf, subjectOf, urisOf, type Fields } from './certificate-fields.js';
import { parseSpokenFor, speakersGroup } from './spoken-for.js';

type Vouching = Readonly<{ vouchesFor: (certificate: X509Certificate) => boolean }>;

/**
 * The authorities that the handshake accepts, for clients and for authenticating proxies. A proxy's
 * certificate must have one of `names`; if `names` is empty, any name.
 */
export type TrustedKinds = Readonly<{ clients: Vouching | undefined; proxies: Vouching; names: readonly string[] }>;

/**
 * Parses the certificate, so call it once per connection. `kinds`: set if the handshake also
 * accepts authenticating proxies.
 */
export function callerOf(socket: TLSSocket, kinds?: TrustedKinds): Caller {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return anonymous;
  const caller = parseCaller(certificate);
  return kinds === undefined || caller === anonymous ? caller : ofItsKind(caller, certificate, kinds);
}

/**
 * The groups in a proxy's own certificate never count, because the proxy sends requests of others.
 */
function ofItsKind(caller: Caller, certificate: X509Certificate, { clients, proxies, names }: TrustedKinds): Caller {
  const { user, validUntilMs } = caller;
  const isNamed = names.length === 0 || names.includes(user);
  if (isNamed && proxies.vouchesFor(certificate))
    return Object.freeze({ user, groups: [], isAuthenticatingProxy: true, ...(validUntilMs !== undefined && { validUntilMs }) });
  return clients?.vouchesFor(certificate) === true ? caller : anonymous;
}

/**
 * The last CN and every O, as Go reads them. If the CN is missing, or a CN or O is no text, the
 * certificate names nobody.
 */
export function parseCaller(certificate: X509Certificate): Caller {
  try {
    return readCaller(fieldsOf(certificate), Date.parse(certificate.validTo));
  } catch {
    return anonymous;
  }
}

function readCaller(fields: Fields, validUntilMs: number): Caller {
  const user = subjectOf(fields, attributeIds.commonName).at(-1);
  const groups = Object.freeze(subjectOf(fields, attributeIds.organization));
  if (user === undefined || user === '' || Number.isNaN(validUntilMs)) return anonymous;
  const speaksFor = groups.includes(speakersGroup) ? parseSpokenFor(alternativeUrisOf(fields)) : undefined;
  return Object.freeze({
    user,
    groups,
    validUntilMs,
    ...(speaksFor === undefined ? {} : { speaksFor: Object.freeze(speaksFor) }),
  });
}

/**
 * The URIs of all subject alternative names. A certificate whose extension cannot be read speaks
 * for nobody. Its user and groups still count, because a name of an unknown kind is no error.
 */
function alternativeUrisOf(fields: Fields): readonly string[] {
  try {
    const names = extensionsOf(fields).filter(({ id }) => id === extensionIds.subjectAlternativeName);
    return names.flatMap(({ value }) => urisOf(value));
  } catch {
    return [];
  }
}
