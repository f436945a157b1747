/**
 * Who is at the other end of a TLS connection, and whom they speak for.
 *
 * A caller is named only by a certificate that a trusted CA signed. `authorized` alone is not enough: Node calls a TLS 1.3
 * session that was resumed without any certificate authorized too. The names are read from the DER: a subject
 * *string* cannot be split, because a value may itself hold ',' '+' '=' or a line break, and with them a group it is not in.
 */
import 'reflect-metadata';
import type { TLSSocket } from 'node:tls';
import { SubjectAlternativeNameExtension, X509Certificate } from '@peculiar/x509';
import { anonymous, type Caller } from '../domain/caller.js';
import { parseSpokenFor, speakersGroup } from './spoken-for.js';

/** Reads the certificate: to be called once per connection. */
export function callerOf(socket: TLSSocket): Caller {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined ? anonymous : parseCaller(certificate.raw);
}

/** The last CN and every O, as Go reads them. Without a CN the certificate names nobody. */
export function parseCaller(der: Uint8Array): Caller {
  const certificate = new X509Certificate(Uint8Array.from(der));
  const { subjectName } = certificate;
  const user = subjectName.getField('CN').at(-1);
  if (user === undefined || user === '') return anonymous;
  const groups = Object.freeze(subjectName.getField('O'));
  const speaksFor = groups.includes(speakersGroup) ? parseSpokenFor(urisOf(certificate)) : undefined;
  return Object.freeze({
    user,
    groups,
    validUntilMs: certificate.notAfter.getTime(),
    ...(speaksFor === undefined ? {} : { speaksFor: Object.freeze(speaksFor) }),
  });
}

/**
 * The URIs of every subject alternative name. An extension that cannot be read has none: such a certificate speaks for nobody, and is
 * otherwise who it is, because a name of a kind unknown here is no mistake.
 */
function urisOf(certificate: X509Certificate): readonly string[] {
  try {
    const names = certificate.getExtensions(SubjectAlternativeNameExtension).flatMap(({ names }) => names.items);
    return names.filter(({ type }) => type === 'url').map(({ value }) => value);
  } catch {
    return [];
  }
}
