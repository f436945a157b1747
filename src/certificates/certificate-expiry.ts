/**
 * Reports when the certificates that this process uses expire: in its status, in a metric, and in
 * the log. The log gets a warning a day from 30 days before the end. For a certificate that has
 * expired or is not valid yet, it gets an error a day. For an agent's certificates, which may be
 * short-lived, the warnings begin in the last seventh of their life.
 *
 * An expired certificate stays in use: the peer decides whether to trust it.
 */
import { X509Certificate } from 'node:crypto';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { CertificateStatus } from '../domain/status.js';
import { certificateBlocks } from './pair-files.js';

/**
 * All certificates of one file, because a chain is invalid once one certificate has expired.
 * `warnMs`: how long before the end the warnings begin.
 */
export type UsedCertificates = readonly (Named & Readonly<{ notBefore: string; warnMs: number }>)[];

type Named = Omit<CertificateStatus, 'expiresInMs'>;

type CertificateUse = 'serving' | 'client-ca' | 'requestheader-ca' | 'parent' | 'shard' | 'cache';

const dayMs = 86_400_000;
const warnMsByDefault = 30 * dayMs;
/**
 * Automatic renewal happens after two thirds or four fifths of a certificate's life. In the last
 * seventh it is late.
 */
const lateShare = 1 / 7;

export class CertificateExpiry {
  readonly #parts: Readonly<{ clock: Clock; log: Log }>;
  readonly #used: readonly (() => UsedCertificates)[];
  readonly #loggedMs = new Map<string, number>();
  #cancel: () => void = () => {};

  /**
   * Each of `used` reads the certificates now in use. A reader that throws is called again at the
   * next check.
   */
  constructor(parts: Readonly<{ clock: Clock; log: Log }>, used: readonly (() => UsedCertificates)[]) {
    this.#parts = parts;
    this.#used = used;
  }

  /** Checks at once and every `intervalMs`, and logs the results. */
  watch(intervalMs: number): void {
    this.#check();
    this.#cancel = this.#parts.clock.after(intervalMs, () => this.watch(intervalMs));
  }

  /**
   * Leaves out certificates that cannot be read. The part that uses such a certificate logs the
   * error.
   */
  report(): readonly CertificateStatus[] {
    return this.#present().map(({ certificate, expiresInMs }) => ({ ...certificate, expiresInMs }));
  }

  close(): void {
    this.#cancel();
  }

  #check(): void {
    const { clock, log } = this.#parts;
    const nowMs = clock.now();
    for (const { certificate, expiresInMs, notBefore, warnMs } of this.#present()) {
      const isEarly = Date.parse(notBefore) > clock.wallMs();
      if (expiresInMs > warnMs && !isEarly) continue;
      const hasExpired = expiresInMs <= 0;
      const logged = JSON.stringify([certificate, hasExpired, isEarly]);
      if (nowMs - (this.#loggedMs.get(logged) ?? -Infinity) < dayMs) continue;
      this.#forgetBefore(nowMs - dayMs);
      this.#loggedMs.set(logged, nowMs);
      if (isEarly) log.error('certificate.not-yet-valid', { ...certificate, notBefore });
      else if (hasExpired) log.error('certificate.expired', certificate);
      else log.warn('certificate.expires-soon', { ...certificate, daysLeft: Math.floor(expiresInMs / dayMs) });
    }
  }

  #present(): readonly Readonly<{ certificate: Named; expiresInMs: number; notBefore: string; warnMs: number }>[] {
    const nowMs = this.#parts.clock.wallMs();
    return this.#used.flatMap(certificatesOf).map(({ notBefore, warnMs, ...certificate }) => ({
      certificate,
      expiresInMs: Date.parse(certificate.notAfter) - nowMs,
      notBefore,
      warnMs,
    }));
  }

  /** Removes messages that were logged a day ago or earlier: they may be logged again. */
  #forgetBefore(pastMs: number): void {
    for (const [logged, loggedMs] of this.#loggedMs) if (loggedMs <= pastMs) this.#loggedMs.delete(logged);
  }
}

function certificatesOf(read: () => UsedCertificates): UsedCertificates {
  try {
    return read();
  } catch {
    return [];
  }
}

type CertificateFile = Readonly<{ use: CertificateUse; file: string; pem: string }>;

/**
 * Parses the result of `read` only when it has changed. Every status report calls this, and parsing
 * a certificate takes 0.1 ms.
 */
export function parsedOnce(read: () => CertificateFile | undefined): () => UsedCertificates {
  let last: (CertificateFile & Readonly<{ certificates: UsedCertificates }>) | undefined;
  return () => {
    const now = read();
    if (now === undefined) return [];
    if (last?.pem !== now.pem || last.file !== now.file) last = { ...now, certificates: certificatesIn(now.use, now.file, now.pem) };
    return last.certificates;
  };
}

/**
 * `shard` and `cache`: the certificates that an agent shows to its shard and to its cache. Throws
 * for a block that is no certificate.
 */
export function certificatesIn(use: CertificateUse, file: string, pem: string): UsedCertificates {
  return certificateBlocks(pem).map((block) => {
    const { subject, validFrom, validTo } = new X509Certificate(block);
    const warnMs = use === 'shard' || use === 'cache' ? (Date.parse(validTo) - Date.parse(validFrom)) * lateShare : warnMsByDefault;
    const [notBefore, notAfter] = [validFrom, validTo].map((time) => new Date(time).toISOString()) as [string, string];
    return { use, file, subject: subject.replaceAll('\n', ', '), notBefore, notAfter, warnMs };
  });
}
