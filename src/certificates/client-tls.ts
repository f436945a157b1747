/** What a client of TLS shows and trusts, from files that are renewed in place. */
import { readPair, readText } from './pair-files.js';

export type ClientTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

/** Without a certificate where none of the two files is given. `whose`: the server's, for messages. Throws CacheError. */
export function readClientTls(
  { caFile, certFile, keyFile }: Readonly<{ caFile: string; certFile: string | undefined; keyFile: string | undefined }>,
  whose: string,
): ClientTls {
  const ca = readText(caFile, `CA of ${whose}`);
  if (certFile === undefined || keyFile === undefined) return { ca, certificate: undefined, key: undefined };
  const { cert: certificate, key } = readPair({ certFile, keyFile });
  return { ca, certificate, key };
}
