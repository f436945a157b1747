/** A certificate and its key as two PEM files: read together, and written so that nobody ever sees half of one. */
import { X509Certificate, createPrivateKey, randomBytes, type KeyObject } from 'node:crypto';
import { closeSync, fchmodSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { CacheError } from '../domain/errors.js';

export type PairFiles = Readonly<{ certFile: string; keyFile: string }>;

/** What `tls.createServer` and `tls.Server.setSecureContext` need. */
export type SecureContextPair = Readonly<{ cert: string; key: string }>;

const ownerMask = 0o700;

/** Checks what TLS would only notice at the first handshake: that both parse and belong together. Throws CacheError. */
export function readPair({ certFile, keyFile }: PairFiles): SecureContextPair {
  const pair = { cert: readText(certFile, 'TLS certificate'), key: readText(keyFile, 'TLS private key') };
  checkPair(pair, { certFile, keyFile });
  return pair;
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

/** Throws CacheError. */
export function readText(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CacheError(`cannot read the ${what} ${path}`, { cause });
  }
}

function parse<T>(path: string, complaint: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new CacheError(`${path} holds ${complaint}`, { cause });
  }
}
