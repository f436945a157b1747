/** The certificate and the trusted CA of a TLS client, from files that are renewed in place. */
import { readAuthorities, readPair, type PairFlags } from './pair-files.js';

export type ClientTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

/**
 * Without `certFile` and `keyFile` the client has no certificate. `whose` names the server and
 * `flags` the options, for messages. Throws CacheError.
 */
export function readClientTls(
  { caFile, certFile, keyFile }: Readonly<{ caFile: string; certFile: string | undefined; keyFile: string | undefined }>,
  whose: string,
  flags: PairFlags & Readonly<{ ca: string }>,
): ClientTls {
  const ca = readAuthorities(caFile, `CA of ${whose}`, flags.ca);
  if (certFile === undefined || keyFile === undefined) return { ca, certificate: undefined, key: undefined };
  const { cert: certificate, key } = readPair({ certFile, keyFile }, flags);
  return { ca, certificate, key };
}
