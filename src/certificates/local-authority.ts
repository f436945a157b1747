/**
 * An authority for operators who have none: two files in a directory. Everybody may have `ca.crt`.
 * Whoever has `ca.key` can issue certificates of masters.
 *
 * A1 The authority is made when neither file exists, and never overwritten: a new authority would
 *    make all earlier certificates worthless.
 * A2 The key is written first. A crash then leaves a key that has signed nothing, and the next
 *    start fails with an error that says so.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Authority, type CertificateAndKey } from './authority.js';
import { faultOfDates, readPair, readText, replaceFile, type PairFiles } from './pair-files.js';

const authorityName = 'strata authority';
const validityDays = 3650;
const privateMode = 0o600;
const publicMode = 0o644;
const stem = 'ca';

export class LocalAuthority {
  readonly authority: Authority;
  readonly files: PairFiles;
  readonly isNew: boolean;

  private constructor(directory: string, authority: Authority, isNew: boolean) {
    this.authority = authority;
    this.files = filesIn(directory, stem);
    this.isNew = isNew;
  }

  /** Throws CacheError if the authority cannot be used or made. */
  static async open({ clock }: { clock: Clock }, directory: string): Promise<LocalAuthority> {
    const { certFile, keyFile } = filesIn(directory, stem);
    const [hasCertificate, hasKey] = [existsSync(certFile), existsSync(keyFile)];
    if (hasCertificate && hasKey) return new LocalAuthority(directory, await load({ clock }, { certFile, keyFile }), false);
    if (hasCertificate !== hasKey) {
      const [there, missing] = hasCertificate ? [certFile, keyFile] : [keyFile, certFile];
      throw new CacheError(
        `${there} exists and ${missing} does not: put it back, or remove ${there} and run this again for a new authority, which nobody trusts yet`,
      );
    }

    const authority = await Authority.create({ clock }, { name: `${authorityName} ${clock.wallMs()}`, validityDays });
    wrapped(`cannot keep an authority in ${directory}`, () => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      writeFileSync(keyFile, authority.keyPem, { mode: privateMode, flag: 'wx' });
      writeFileSync(certFile, authority.certificatePem, { mode: publicMode, flag: 'wx' });
    });
    return new LocalAuthority(directory, authority, true);
  }

  /**
   * Writes `NAME.crt` and `NAME.key`; NAME must not be `ca`. Only `force` replaces files.
   * `replaced` describes them. Throws CacheError.
   */
  write(
    { certificatePem, keyPem }: CertificateAndKey,
    { directory, name, force }: { directory: string; name: string; force: boolean },
  ): PairFiles & Readonly<{ replaced: readonly string[] }> {
    assert(name !== stem, 'no certificate is named as the authority');
    const { certFile, keyFile } = filesIn(directory, name);
    wrapped(`cannot write ${certFile}`, () => mkdirSync(directory, { recursive: true }));
    const there = [certFile, keyFile].filter((file) => existsSync(file));
    if (there.length > 0 && !force) throw new CacheError(`${there.join(' and ')} would be overwritten; --force does so`);
    const replaced = there.map((file) => (file === certFile ? `${file}, ${describe(file)}` : file));
    wrapped(`cannot write ${certFile}`, () => {
      replaceFile(keyFile, keyPem, privateMode);
      replaceFile(certFile, certificatePem, publicMode);
    });
    return { certFile, keyFile, replaced };
  }
}

function describe(certFile: string): string {
  try {
    const { subject, validTo } = new X509Certificate(readText(certFile, 'certificate'));
    return `which was of ${subject.replaceAll('\n', ', ')} until ${new Date(validTo).toISOString()}`;
  } catch {
    return 'which was not a certificate';
  }
}

async function load({ clock }: { clock: Clock }, files: PairFiles): Promise<Authority> {
  const { cert: certificatePem, key: keyPem } = readPair(files);
  if (!new X509Certificate(certificatePem).ca) throw new CacheError(`${files.certFile} is not the certificate of a CA`);
  const fault = faultOfDates(certificatePem, clock.wallMs());
  if (fault !== undefined) throw new CacheError(`the authority in ${files.certFile} ${fault}`);
  try {
    return await Authority.load({ clock }, { certificatePem, keyPem });
  } catch (cause) {
    throw new CacheError(`${files.keyFile} cannot sign here: only ECDSA keys of the curve P-256 can`, { cause });
  }
}

function filesIn(directory: string, name: string): PairFiles {
  return { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
}

function wrapped(failure: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    throw new CacheError(failure, { cause });
  }
}
