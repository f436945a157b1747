/**
 * A certificate and its key as two PEM files. They are read together, and written so that no reader
 * ever sees half a file.
 */
import { createPrivateKey, randomBytes, X509Certificate, type KeyObject } from 'node:crypto';
import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { CacheError } from '../domain/errors.js';
import { readRegularFile } from '../regular-file.js';

export type PairFiles = Readonly<{ certFile: string; keyFile: string }>;

/** The input of `tls.createServer` and `tls.Server.setSecureContext`. */
export type SecureContextPair = Readonly<{ cert: string; key: string }>;

/** The options that name the files, without dashes. */
export type PairFlags = Readonly<{ cert: string; key: string }>;

const ownerMask = 0o700;
/**
 * Base64 has no '-'. A pattern that allowed '-' would need quadratic time for a text of many
 * BEGINs.
 */
const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Checks that both texts parse and belong together, which TLS would notice only at the first
 * handshake. Throws CacheError.
 */
export function readPair({ certFile, keyFile }: PairFiles, flags?: PairFlags): SecureContextPair {
  const pair = { cert: readText(certFile, 'TLS certificate', flags?.cert), key: readText(keyFile, 'TLS private key', flags?.key) };
  ofOption(flags === undefined ? undefined : `${flags.cert}, --${flags.key}`, () => checkPair(pair, { certFile, keyFile }));
  return pair;
}

/**
 * Reads the CAs by which a server is verified. An empty text is refused: Node would treat it as no
 * CA option, and trust its built-in authorities. Throws CacheError.
 */
export function readAuthorities(path: string, what: string, flag?: string): string {
  const pem = readText(path, what, flag);
  ofOption(flag, () => checkAuthorities(path, pem));
  return pem;
}

/**
 * Throws CacheError for a broken bundle, because Node silently ignores the invalid part of a
 * bundle. `name` names the bundle in messages.
 */
export function checkAuthorities(name: string, pem: string): void {
  const begun = pem.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0;
  const whole = certificateBlocks(pem);
  if (begun === 0 || whole.length !== begun) throw new CacheError(`${name} holds no PEM certificate, or an incomplete one`);
  for (const block of whole) parse(name, 'a PEM block that is not a certificate', () => new X509Certificate(block));
}

export function certificateBlocks(pem: string): readonly string[] {
  return pem.match(certificatePattern) ?? [];
}

/** Like `readPair`, for texts. `files` names them in messages. Throws CacheError. */
export function checkPair({ cert, key }: SecureContextPair, { certFile, keyFile }: PairFiles): void {
  const certificate = parse(certFile, 'no PEM certificate', () => new X509Certificate(cert));
  const privateKey = parse(keyFile, 'no PEM private key (an encrypted one cannot be used)', (): KeyObject => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new CacheError(`${keyFile} is not the key of the certificate in ${certFile}`);
}

/**
 * Replaces a file atomically, by renaming a new file whose name cannot be guessed. Only readers
 * whom `mode` allows see the text, and never half of it. A link at `path` is replaced, not
 * followed.
 */
export function replaceFile(path: string, text: string, mode: number): void {
  const beside = `${path}.${randomBytes(8).toString('hex')}.new`;
  const fd = openSync(beside, 'wx', mode & ownerMask);
  try {
    try {
      fchmodSync(fd, mode);
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

/** `flag`: the option that names the file, without dashes. Throws CacheError. */
export function readText(path: string, what: string, flag?: string): string {
  return ofOption(flag, () => {
    try {
      return readRegularFile(path);
    } catch (cause) {
      throw new CacheError(`cannot read the ${what} ${path}`, { cause });
    }
  });
}

/**
 * Runs `read`, and puts the name of the option before the message of its CacheError. `flag`:
 * without dashes.
 */
export function ofOption<T>(flag: string | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (flag === undefined || !(error instanceof CacheError)) throw error;
    throw new CacheError(`--${flag}: ${error.message}`, error.cause === undefined ? {} : { cause: error.cause });
  }
}

function parse<T>(path: string, complaint: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new CacheError(`${path} holds ${complaint}`, { cause });
  }
}

/** The certificate and the trusted CA of a TLS client, from files that are renewed in place. */
type ClientTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

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

/**
 * Why the dates of the first certificate in `pem` forbid its use; undefined if they do not. A peer
 * that rejects the certificate does not report the reason.
 *
 * The result is the end of a sentence that begins "the certificate …".
 */
export function faultOfDates(pem: string, wallMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pem);
  if (Date.parse(validFrom) > wallMs) return `is not valid before ${new Date(validFrom).toISOString()}`;
  if (Date.parse(validTo) <= wallMs) return `expired at ${new Date(validTo).toISOString()}`;
  return undefined;
}
