/**
 * When the certificates that this process uses expire: in its status, in a metric, and in the log, once a day from 30 days on and as
 * an error once they have, or are not valid yet. Some live for less: of these the last seventh counts.
 * Such a certificate is used all the same: the other end decides whether to trust it.
 */
import { X509Certificate } from 'node:crypto';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { CertificateStatus } from '../domain/status.js';

/** All that stand in one file: a chain ends with whichever ends first. `warnMs`: how long before its end a certificate is warned of. */
export type UsedCertificates = readonly (Named & Readonly<{ notBefore: string; warnMs: number }>)[];

type Named = Omit<CertificateStatus, 'expiresInMs'>;

type CertificateUse = 'serving' | 'client-ca' | 'requestheader-ca' | 'parent' | 'shard' | 'cache';

const dayMs = 86_400_000;
const warnMsByDefault = 30 * dayMs;
/** Whoever renews certificates does it after two thirds of their life, or four fifths. In the last seventh it is late. */
const lateShare = 1 / 7;
const pemPattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

export class CertificateExpiry {
  readonly #parts: Readonly<{ clock: Clock; log: Log }>;
  readonly #used: readonly (() => UsedCertificates)[];
  /** When each was last logged. */
  readonly #loggedMs = new Map<string, number>();
  #cancel: () => void = () => {};

  /** Each of `used` reads what is in use now; one may throw, and is called again. */
  constructor(parts: Readonly<{ clock: Clock; log: Log }>, used: readonly (() => UsedCertificates)[]) {
    this.#parts = parts;
    this.#used = used;
  }

  /** Looks now, and from then on every `intervalMs`, and writes to the log. */
  watch(intervalMs: number): void {
    this.#look();
    this.#cancel = this.#parts.clock.after(intervalMs, () => this.watch(intervalMs));
  }

  /** Without those that cannot be read now: their user logs that. */
  report(): readonly CertificateStatus[] {
    return this.#present().map(({ certificate, expiresInMs }) => ({ ...certificate, expiresInMs }));
  }

  close(): void {
    this.#cancel();
  }

  #look(): void {
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

  /** What was logged longer ago than a day is logged again, or replaced by now. */
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

/** Parses what `read` returns only where that has changed: whoever asks for the status asks for this, and a certificate takes 0.1 ms. */
export function parsedOnce(read: () => CertificateFile | undefined): () => UsedCertificates {
  let last: (CertificateFile & Readonly<{ certificates: UsedCertificates }>) | undefined;
  return () => {
    const now = read();
    if (now === undefined) return [];
    if (last?.pem !== now.pem || last.file !== now.file) last = { ...now, certificates: certificatesIn(now.use, now.file, now.pem) };
    return last.certificates;
  };
}

/** `shard` and `cache`: what an agent shows the shard that it reads, and its cache. Throws for a block that is no certificate. */
export function certificatesIn(use: CertificateUse, file: string, pem: string): UsedCertificates {
  return (pem.match(pemPattern) ?? []).map((block) => {
    const { subject, validFrom, validTo } = new X509Certificate(block);
    const warnMs = use === 'shard' || use === 'cache' ? (Date.parse(validTo) - Date.parse(validFrom)) * lateShare : warnMsByDefault;
    const [notBefore, notAfter] = [validFrom, validTo].map((time) => new Date(time).toISOString()) as [string, string];
    return { use, file, subject: subject.replaceAll('\n', ', '), notBefore, notAfter, warnMs };
  });
}
