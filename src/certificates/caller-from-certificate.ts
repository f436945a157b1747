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

/** Reads the certificate: to be called once per connection. */
export function callerOf(socket: TLSSocket): Caller {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined ? anonymous : parseCaller(certificate);
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
