/**
 * What a front door counts, under the names of kcp's own (metric-table.ts). Nothing that a client or a backend has chosen becomes a label: a method or a code that
 * HTTP does not have is `unknown`, and a shard is one that the installation has.
 */
import { STATUS_CODES } from 'node:http';
import type { frontDoorMetricTable } from '../diagnostics/metric-table.js';
import type { InstrumentsOf } from '../diagnostics/metrics.js';
import { certificateFaultOf, type CertificateFault } from '../domain/certificate-fault.js';
import type { ShardName } from '../domain/shard.js';

/** The kinds that kcp has. */
const tlsErrorTypes = ['unknown_ca', 'expired_cert', 'cipher_mismatch', 'hostname_mismatch', 'other'] as const;
type TlsErrorType = (typeof tlsErrorTypes)[number];

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE']);
/** As kcp answers a request whose backend it could not reach, or whose client has gone before. */
const unanswered = 502;
const unknown = 'unknown';
/** How deep an error's causes are looked at. */
const causesMax = 8;

const typesOfFaults: Readonly<Record<CertificateFault, TlsErrorType>> = {
  untrusted: 'unknown_ca',
  expired: 'expired_cert',
  'not-yet-valid': 'expired_cert',
  'other-names': 'hostname_mismatch',
};
/** What else OpenSSL says of a certificate that it does not accept. */
const otherFaults: ReadonlySet<unknown> = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
]);

export class DoorMetrics {
  readonly #instruments: InstrumentsOf<typeof frontDoorMetricTable>;
  /** Those that something was counted of. */
  readonly #shards = new Set<ShardName>();

  constructor(instruments: InstrumentsOf<typeof frontDoorMetricTable>) {
    this.#instruments = instruments;
  }

  /** A request has come. What it returns observes it at its end; `code`: undefined where there was no answer. */
  begin(): (method: string | undefined, code: number | undefined) => void {
    const observe = this.#instruments.requestSeconds.time();
    return (method, code = unanswered) => observe({ method: methodLabel(method), code: codeLabel(code) });
  }

  /** `shard`: undefined where the path names no logical cluster; kcp counts nothing then. */
  requestBody(shard: ShardName | undefined, bytes: number): void {
    if (shard !== undefined) this.#instruments.requestBodyBytes.add(bytes, this.#of(shard));
  }

  answerBody(shard: ShardName | undefined, bytes: number): void {
    if (shard !== undefined) this.#instruments.answerBodyBytes.add(bytes, this.#of(shard));
  }

  /** A request has failed. Counts it if TLS is why. */
  failed(shard: ShardName | undefined, error: unknown): void {
    const type = tlsErrorTypeOf(error);
    if (type === undefined) return;
    this.#instruments.tlsErrors.add(1, { ...(shard === undefined ? { shard: unknown } : this.#of(shard)), error_type: type });
  }

  /** Shards that the installation no longer has have no series any more. */
  keepOnly(shards: ReadonlySet<ShardName>): void {
    const { requestBodyBytes, answerBodyBytes, tlsErrors } = this.#instruments;
    for (const shard of this.#shards) {
      if (shards.has(shard)) continue;
      this.#shards.delete(shard);
      for (const bytes of [requestBodyBytes, answerBodyBytes]) bytes.forget({ shard });
      for (const type of tlsErrorTypes) tlsErrors.forget({ shard, error_type: type });
    }
  }

  #of(shard: ShardName): Readonly<{ shard: ShardName }> {
    this.#shards.add(shard);
    return { shard };
  }
}

/** In lower case, as promhttp has it. */
function methodLabel(method = ''): string {
  return methods.has(method) ? method.toLowerCase() : unknown;
}

function codeLabel(code: number): string {
  return STATUS_CODES[code] === undefined ? unknown : String(code);
}

/** Undefined for an error that is not about TLS. */
export function tlsErrorTypeOf(error: unknown): TlsErrorType | undefined {
  let cause = error;
  for (let depth = 0; depth < causesMax && cause instanceof Error; depth += 1) {
    const fault = certificateFaultOf(cause);
    if (fault !== undefined) return typesOfFaults[fault];
    const code: unknown = Reflect.get(cause, 'code');
    if (otherFaults.has(code)) return 'other';
    if (typeof code === 'string' && /^(?:EPROTO$|ERR_SSL_)/.test(code)) return 'cipher_mismatch';
    cause = cause.cause;
  }
  return undefined;
}
