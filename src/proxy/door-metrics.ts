/**
 * The metrics of a front door, under the names that kcp uses (metric-table.ts). No text that a
 * client or a backend chooses becomes a label. A method or code that HTTP does not have is
 * `unknown`. A shard label is a shard of the installation, or `unknown`.
 */
import { STATUS_CODES } from 'node:http';
import type { frontDoorMetricTable } from '../diagnostics/metric-table.js';
import type { InstrumentsOf } from '../diagnostics/metrics.js';
import { certificateFaultOf, type CertificateFault } from '../domain/base/certificate-fault.js';
import type { ShardName } from '../domain/shard.js';

/** The error types of kcp's metric. */
const tlsErrorTypes = ['unknown_ca', 'expired_cert', 'cipher_mismatch', 'hostname_mismatch', 'other'] as const;
type TlsErrorType = (typeof tlsErrorTypes)[number];

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE']);
/**
 * kcp counts 502 if it cannot reach the backend, or if the client disconnects before the answer.
 */
const unanswered = 502;
const unknown = 'unknown';
/** How many causes of an error are inspected. */
const causesMax = 8;

const typesOfFaults: Readonly<Record<CertificateFault, TlsErrorType>> = {
  untrusted: 'unknown_ca',
  expired: 'expired_cert',
  'not-yet-valid': 'expired_cert',
  'other-names': 'hostname_mismatch',
};
/** Further OpenSSL codes of a rejected certificate. */
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
  readonly #shards = new Set<ShardName>();

  constructor(instruments: InstrumentsOf<typeof frontDoorMetricTable>) {
    this.#instruments = instruments;
  }

  /**
   * Call it when a request arrives, and the returned function when the request ends. `code`:
   * undefined if there was no answer.
   */
  begin(): (method: string | undefined, code: number | undefined) => void {
    const observe = this.#instruments.requestSeconds.time();
    return (method, code = unanswered) => observe({ method: methodLabel(method), code: codeLabel(code) });
  }

  /**
   * `shard`: undefined if the path names no logical cluster. As in kcp, nothing is counted then.
   */
  requestBody(shard: ShardName | undefined, bytes: number): void {
    if (shard !== undefined) this.#instruments.requestBodyBytes.add(bytes, this.#of(shard));
  }

  answerBody(shard: ShardName | undefined, bytes: number): void {
    if (shard !== undefined) this.#instruments.answerBodyBytes.add(bytes, this.#of(shard));
  }

  /** Counts a failed request if TLS is the reason. */
  failed(shard: ShardName | undefined, error: unknown): void {
    const type = tlsErrorTypeOf(error);
    if (type === undefined) return;
    this.#instruments.tlsErrors.add(1, { ...(shard === undefined ? { shard: unknown } : this.#of(shard)), error_type: type });
  }

  /** Removes the series of shards that the installation does not have any more. */
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

/** The label is in lower case, as promhttp writes methods. */
function methodLabel(method = ''): string {
  return methods.has(method) ? method.toLowerCase() : unknown;
}

function codeLabel(code: number): string {
  return STATUS_CODES[code] === undefined ? unknown : String(code);
}

/** Undefined if the error is not about TLS. */
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
