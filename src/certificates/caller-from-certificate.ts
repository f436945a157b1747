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
import { extensionIds, extensionsOf, urisOf } from './certificate-extensions.js';
import { parseSpokenFor, speakersGroup } from './spoken-for.js';

/** Reads the certificate: to be called once per connection. */
export function callerOf(socket: TLSSocket): Caller {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined ? anonymous : parseCaller(certificate);
}

/** The last CN and every O, as Go reads them. Without a CN the certificate names nobody. */
export function parseCaller(certificate: X509Certificate): Caller {
  const user = subjectOf(certificate, 'CN').at(-1);
  const validUntilMs = Date.parse(certificate.validTo);
  if (user === undefined || user === '' || Number.isNaN(validUntilMs)) return anonymous;
  const groups = Object.freeze(subjectOf(certificate, 'O'));
  const speaksFor = groups.includes(speakersGroup) ? parseSpokenFor(alternativeUrisOf(certificate)) : undefined;
  return Object.freeze({
    user,
    groups,
    validUntilMs,
    ...(speaksFor === undefined ? {} : { speaksFor: Object.freeze(speaksFor) }),
  });
}

/** Every value of a field of the subject, in order. OpenSSL reads them; Node gives a field that occurs once as a text, else as a list. */
function subjectOf(certificate: X509Certificate, field: 'CN' | 'O'): readonly string[] {
  const subject: Partial<Record<string, string | string[]>> | undefined = certificate.toLegacyObject().subject;
  const values = subject?.[field] ?? [];
  return typeof values === 'string' ? [values] : values;
}

/**
 * The URIs of every subject alternative name. An extension that cannot be read has none: such a certificate speaks for nobody, and is
 * otherwise who it is, because a name of a kind unknown here is no mistake.
 */
function alternativeUrisOf(certificate: X509Certificate): readonly string[] {
  try {
    const names = extensionsOf(certificate).filter(({ id }) => id === extensionIds.subjectAlternativeName);
    return names.flatMap(({ value }) => urisOf(value));
  } catch {
    return [];
  }
}
