/**
 * The certificate that the server shows: from files that an operator rotates, or self-made at the
 * first start and kept.
 *
 * A self-made `apiserver.crt` contains the leaf *and* its CA, because kcp's sharded-test-server
 * gives that file to its clients as the trusted bundle. The CA's key is dropped, so nobody can sign
 * under it later. The key is written before the certificate, each by rename, so a reader never sees
 * part of `apiserver.crt`. A crash in between leaves a key that nobody trusts yet.
 *
 *   start ──▶ files given? ──yes──▶ read, check ──▶ watched: newer and valid ⇒ shown from now on
 *                  │no                              newer and invalid ⇒ logged, the old one stays
 *                  └──▶ kept? ──yes, in date──▶ used           ──no or expired──▶ made, kept
 */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import type { Log } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable } from '../domain/base/reloaded.js';
import type { CertificateAndKey } from './authority.js';
import { readPair, replaceFile, type PairFiles, type PairFlags, type SecureContextPair } from './pair-files.js';
import { pollFiles } from './polled-files.js';

/** Either both files, or a directory in which a self-made pair is kept. */
export type ServingCertificateOptions = Readonly<{
  certFile: string | undefined;
  keyFile: string | undefined;
  directory: string;
  bindAddress: string;
  flags?: PairFlags;
}>;

/**
 * Nothing rotates a self-made certificate, so it should outlive the machine. Operators who want
 * rotation give files.
 */
const selfMadeValidityDays = 3650;
const authorityName = 'strata self-signed';

export class ServingCertificate {
  readonly #files: PairFiles;
  readonly #log: Log;
  #pair: SecureContextPair;

  private constructor(files: PairFiles, pair: SecureContextPair, log: Log) {
    this.#files = files;
    this.#pair = pair;
    this.#log = log;
  }

  static async open({ clock, log }: { clock: Clock; log: Log }, options: ServingCertificateOptions): Promise<ServingCertificate> {
    const { certFile, keyFile } = options;
    if (certFile !== undefined && keyFile !== undefined) {
      const files = { certFile, keyFile };
      return new ServingCertificate(files, readPair(files, options.flags), log);
    }

    const files = { certFile: join(options.directory, 'apiserver.crt'), keyFile: join(options.directory, 'apiserver.key') };
    const names = servingNames(options.bindAddress);
    const kept = readKept(files, clock);
    const pair = kept ?? (await makePair(files, clock, names));
    if (kept === undefined) log.info('certificate.made', { file: files.certFile, names });
    const missing = names.filter((name) => !covers(pair, name));
    if (missing.length > 0) log.warn('certificate.names-missing', { file: files.certFile, missing });
    return new ServingCertificate(files, pair, log);
  }

  get pair(): SecureContextPair {
    return this.#pair;
  }

  get file(): string {
    return this.#files.certFile;
  }

  /**
   * Calls `show` with each new, valid pair. In a half-replaced pair the key does not match; the
   * files are read again at the next poll.
   */
  watch({ clock }: { clock: Clock }, { filesPollMs }: { filesPollMs: number }, show: (pair: SecureContextPair) => void): Reloadable {
    const events = { reloaded: 'certificate.reloaded', failed: 'certificate.reload-failed' };
    const take = (): boolean => {
      const next = readPair(this.#files);
      if (next.cert === this.#pair.cert && next.key === this.#pair.key) return false;
      show(next);
      this.#pair = next;
      return true;
    };
    return pollFiles({ clock, log: this.#log }, { events, file: this.file, take }, filesPollMs);
  }
}

/**
 * Every name by which a client may reach this machine: kcp's tests use localhost, operators use the
 * others. A zone (`%eth0`) is left out.
 */
export function servingNames(bindAddress: string): [string, ...string[]] {
  const everywhere = bindAddress === '0.0.0.0' || bindAddress === '::';
  const specific = everywhere ? [] : bindAddress.split('%', 1);
  const others = new Set(['127.0.0.1', '::1', hostname(), ...specific]);
  others.delete('localhost');
  return ['localhost', ...others];
}

/**
 * The kept pair; undefined if there is none or it has expired. Throws CacheError for a certificate
 * without its key, because the server must not overwrite it.
 */
function readKept(files: PairFiles, clock: Clock): SecureContextPair | undefined {
  if (!existsSync(files.certFile)) return undefined;
  try {
    const pair = readPair(files);
    return Date.parse(new X509Certificate(pair.cert).validTo) > clock.wallMs() ? pair : undefined;
  } catch (cause) {
    throw new CacheError(
      `the kept serving certificate cannot be used; remove ${files.certFile} and ${files.keyFile} to have a new one made`,
      { cause },
    );
  }
}

async function makePair(files: PairFiles, clock: Clock, names: [string, ...string[]]): Promise<SecureContextPair> {
  // Loaded only here, because most servers never issue a certificate.
  const { Authority } = await import('./authority.js');
  const authority = await Authority.create({ clock }, { name: `${authorityName} ${clock.wallMs()}`, validityDays: selfMadeValidityDays });
  const leaf: CertificateAndKey = await authority.issueServing({ names, validityDays: selfMadeValidityDays });
  const pair = { cert: leaf.certificatePem + authority.certificatePem, key: leaf.keyPem };
  try {
    mkdirSync(dirname(files.certFile), { recursive: true });
    replaceFile(files.keyFile, pair.key, 0o600);
    replaceFile(files.certFile, pair.cert, 0o644);
  } catch (cause) {
    throw new CacheError(`cannot keep a serving certificate in ${files.certFile}`, { cause });
  }
  return pair;
}

function covers(pair: SecureContextPair, name: string): boolean {
  const certificate = new X509Certificate(pair.cert);
  return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
}
