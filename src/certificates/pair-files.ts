/** A certificate and its key as two PEM files: read together, and written so that nobody ever sees half of one. */
import { X509Certificate, createPrivateKey, randomBytes, type KeyObject } from 'node:crypto';
import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { CacheError } from '../domain/errors.js';
import { readRegularFile } from '../regular-file.js';

export type PairFiles = Readonly<{ certFile: string; keyFile: string }>;

/** What `tls.createServer` and `tls.Server.setSecureContext` need. */
export type SecureContextPair = Readonly<{ cert: string; key: string }>;

/** The options that name the files, without dashes. */
export type PairFlags = Readonly<{ cert: string; key: string }>;

const ownerMask = 0o700;
const certificatePattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** Checks what TLS would only notice at the first handshake: that both parse and belong together. Throws CacheError. */
export function readPair({ certFile, keyFile }: PairFiles, flags?: PairFlags): SecureContextPair {
  const pair = { cert: readText(certFile, 'TLS certificate', flags?.cert), key: readText(keyFile, 'TLS private key', flags?.key) };
  ofOption(flags === undefined ? undefined : `${flags.cert}, --${flags.key}`, () => checkPair(pair, { certFile, keyFile }));
  return pair;
}

/** Certificates of authorities, whom a server is to be trusted by. Node would take an empty text for none at all, and trust those that it knows. Throws CacheError. */
export function readAuthorities(path: string, what: string, flag?: string): string {
  const pem = readText(path, what, flag);
  ofOption(flag, () => checkAuthorities(path, pem));
  return pem;
}

/** Node takes a bundle as far as it is sound, and says nothing of the rest. `name`: where it stands. Throws CacheError. */
export function checkAuthorities(name: string, pem: string): void {
  const begun = pem.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0;
  const whole = pem.match(certificatePattern) ?? [];
  if (begun === 0 || whole.length !== begun) throw new CacheError(`${name} holds no PEM certificates, or not all of one`);
  for (const block of whole) parse(name, 'a PEM block that is no certificate', () => new X509Certificate(block));
}

/** The same for texts; `files` says where they stand. Throws CacheError. */
export function checkPair({ cert, key }: SecureContextPair, { certFile, keyFile }: PairFiles): void {
  const certificate = parse(certFile, 'no PEM certificate', () => new X509Certificate(cert));
  const privateKey = parse(keyFile, 'no PEM private key (an encrypted one cannot be used)', (): KeyObject => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new CacheError(`${keyFile} is not the key of the certificate in ${certFile}`);
}

/**
 * Nobody sees half of it, and only those whom `mode` lets see any of it: the text goes into a new file with a name that cannot be guessed,
 * which then replaces whatever has the right name. A link is replaced, not followed.
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

/** A CacheError of `read` says first which option it is about. `flag`: without dashes. */
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
