/** Classifies failed etcd calls into the kinds that this engine handles differently. */
import { status } from '@grpc/grpc-js';
import { CacheError, type Refusal } from '../../domain/errors.js';

/**
 * - `unknown`: no usable answer. A write may have been applied, or may yet be.
 * - `full`: etcd's quota is used up; etcd accepts no writes until an operator frees space.
 * - `too-large`: the request or the answer exceeds a limit of etcd or gRPC.
 * - `compacted`: the requested revision is gone.
 * - `outdated`: users or roles of etcd changed during the call. etcd did nothing; the call can be
 *   repeated.
 * - `refused`: etcd rejected the call, and would reject it again.
 */
export type EtcdErrorKind = 'unknown' | 'full' | 'too-large' | 'compacted' | 'outdated' | 'refused';

export class EtcdError extends CacheError {
  readonly kind: EtcdErrorKind;

  constructor(kind: EtcdErrorKind, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.name = 'EtcdError';
    this.kind = kind;
  }
}

/** The refusal that a client gets when etcd rejected its write or did not confirm it. */
export function refusalOf({ kind, message }: EtcdError): Refusal {
  switch (kind) {
    case 'unknown':
      return { reason: 'InternalError', message: 'etcd did not answer: it may have done the write, or may still do it' };
    case 'too-large':
      return { reason: 'RequestEntityTooLarge', message: 'the object is larger than etcd accepts' };
    default:
      return { reason: 'ServiceUnavailable', message: `the write was not stored in etcd: ${message}` };
  }
}

/**
 * `code`: the gRPC status code. etcd's rpctypes lists its errors: a used-up quota is
 * RESOURCE_EXHAUSTED, a compacted revision OUT_OF_RANGE.
 */
export function etcdErrorOf(endpoint: string, { code, details }: Readonly<{ code: number; details: string }>): EtcdError {
  const message = `etcd at ${endpoint}: ${details} (${status[code] ?? code})`;
  switch (code) {
    case status.RESOURCE_EXHAUSTED:
      if (details.includes('larger than max')) return new EtcdError('too-large', message);
      return new EtcdError(details.includes('space exceeded') ? 'full' : 'unknown', message);
    case status.OUT_OF_RANGE:
      return new EtcdError('compacted', message);
    case status.INVALID_ARGUMENT:
      if (details.includes('revision of auth store is old')) return new EtcdError('outdated', message);
      return new EtcdError(details.includes('too large') ? 'too-large' : 'refused', message);
    case status.FAILED_PRECONDITION:
      // A learner rejects reads, which other members answer. etcd's own client also tries the next
      // member.
      return new EtcdError(details.includes('learner') ? 'unknown' : 'refused', message);
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
    case status.UNIMPLEMENTED:
      return new EtcdError('refused', message);
    default:
      return new EtcdError('unknown', message);
  }
}
