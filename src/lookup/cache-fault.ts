/** Why a cache could not be read. A CacheFault never means that an object is absent. */
import { CacheError } from '../domain/errors.js';

export type FaultKind =
  /** There was no connection, or it broke. */
  | 'unreachable'
  /** The whole answer did not arrive in time. */
  | 'overdue'
  /** Not sent, because too many requests are under way. */
  | 'busy'
  /** The cache refused with a Status, which gives `status` and `reason`. */
  | 'refused'
  /** The answer is longer than its bound. */
  | 'too-long'
  /** The answer did not come from a cache. */
  | 'unreadable'
  /** The reader was closed. */
  | 'closed';

export type FaultDetails = Readonly<{ status?: number; reason?: string; retryAfterMs?: number | undefined; cause?: unknown }>;

export class CacheFault extends CacheError {
  readonly kind: FaultKind;
  /** The HTTP status; 0 without one. */
  readonly status: number;
  /** Kubernetes' reason, such as `Forbidden`; '' without one. */
  readonly reason: string;
  /** How long to wait before the next request, if the cache says so. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, message: string, { status = 0, reason = '', retryAfterMs, cause }: FaultDetails = {}) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'CacheFault';
    this.kind = kind;
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
