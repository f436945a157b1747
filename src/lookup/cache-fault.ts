/** Why a cache could not be read: a fault, thrown, and never to be treated as the absence of an object. */
import { CacheError } from '../domain/errors.js';

export type FaultKind =
  /** There was no connection, or it broke. */
  | 'unreachable'
  /** The whole answer did not come in time. */
  | 'overdue'
  /** Too many requests are under way; this one was not sent. */
  | 'busy'
  /** The cache refused, with a Status: `status` and `reason` are its own. */
  | 'refused'
  /** The answer is longer than its bound. */
  | 'too-long'
  /** What came did not come from a cache. */
  | 'unreadable'
  /** The reader was closed. */
  | 'closed';

export type FaultDetails = Readonly<{ status?: number; reason?: string; retryAfterMs?: number | undefined; cause?: unknown }>;

export class CacheFault extends CacheError {
  readonly kind: FaultKind;
  /** The HTTP status; 0 when none came. */
  readonly status: number;
  /** Kubernetes' reason, such as `Forbidden`; '' when none was given. */
  readonly reason: string;
  /** When the cache wants the next request, if it says so. */
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
