/** Why a call to etcd came to nothing, in the few kinds that this engine tells apart. */
import { status } from '@grpc/grpc-js';
import { CacheError, type Refusal } from '../../domain/errors.js';

/**
 * `unknown`: a write may have been applied or not, or may yet be. `full`: etcd takes no more writes until an operator has made room. `compacted`: what was asked
 * for is gone. `outdated`: somebody changed users or roles of etcd meanwhile; nothing was done, and it can be asked again. `refused`: that would change nothing.
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

/** What a client is told of a write that etcd has not taken. */
export function refusalOf({ kind, message }: EtcdError): Refusal {
  switch (kind) {
    case 'unknown':
      return { reason: 'InternalError', message: 'etcd has not answered: the write may have been done, or may yet be' };
    case 'too-large':
      return { reason: 'RequestEntityTooLarge', message: 'the object is larger than etcd takes' };
    default:
      return { reason: 'ServiceUnavailable', message: `etcd takes no writes: ${message}` };
  }
}

/** `code`: of gRPC. etcd's own errors are in its rpctypes: a full quota is RESOURCE_EXHAUSTED, compaction OUT_OF_RANGE. */
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
      // A learner serves nobody, and the other members do: etcd's own client asks the next one, too.
      return new EtcdError(details.includes('learner') ? 'unknown' : 'refused', message);
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
    case status.UNIMPLEMENTED:
      return new EtcdError('refused', message);
    default:
      return new EtcdError('unknown', message);
  }
}
