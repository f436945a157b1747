/**
 * Who is at the other end of a TLS connection, and whom they speak for.
 *
 * A caller is named only by a certificate that a trusted CA signed. `authorized` alone is not enough: Node calls a TLS 1.3
 * session that was resumed without any certificate authorized too. The names are read one by one: a subject
 * *string* cannot be split, because a value may itself hold ',' '+' '=' or a line break, and with them a group it is not in.
 */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { anonymous, type Caller } from '../domain/caller.js';
import { attributeIds, extensionIds, extensionsOf, fieldsOf, subjectOf, urisOf, type Fields } from './certificate-fields.js';
import { parseSpokenFor, speakersGroup } from './spoken-for.js';

type Vouching = Readonly<{ vouchesFor: (certificate: X509Certificate) => boolean }>;

/** Whose certificates the handshake has believed: those of clients, and those of authenticating proxies with one of `names`; with any, where there are none. */
export type TwoKinds = Readonly<{ clients: Vouching | undefined; proxies: Vouching; names: readonly string[] }>;

/** Reads the certificate: to be called once per connection. `kinds`: where the handshake believes more than clients. */
export function callerOf(socket: TLSSocket, kinds?: TwoKinds): Caller {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return anonymous;
  const caller = parseCaller(certificate);
  return kinds === undefined || caller === anonymous ? caller : ofItsKind(caller, certificate, kinds);
}

/** An authenticating proxy is that alone, so that nobody has to tell whether it asks for itself. */
function ofItsKind(caller: Caller, certificate: X509Certificate, { clients, proxies, names }: TwoKinds): Caller {
  const { user, validUntilMs } = caller;
  const isNamed = names.length === 0 || names.includes(user);
  if (isNamed && proxies.vouchesFor(certificate))
    return Object.freeze({ user, groups: [], isAuthenticatingProxy: true, ...(validUntilMs !== undefined && { validUntilMs }) });
  return clients?.vouchesFor(certificate) === true ? caller : anonymous;
}

/** The last CN and every O, as Go reads them. Without a CN, or where one of these is no text, the certificate names nobody. */
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
 * The URIs of every subject alternative name. An extension that cannot be read has none: such a certificate speaks for nobody, and is
 * otherwise who it is, because a name of a kind unknown here is no mistake.
 */
function alternativeUrisOf(fields: Fields): readonly string[] {
  try {
    const names = extensionsOf(fields).filter(({ id }) => id === extensionIds.subjectAlternativeName);
    return names.flatMap(({ value }) => urisOf(value));
  } catch {
    return [];
  }
}
