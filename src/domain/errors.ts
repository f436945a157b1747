/**
 * Why a request is refused. One table, in Kubernetes' own words: a refusal is a value until a thin
 * shell throws it as `Refused`; it is turned into a Status in one place. Faults are `CacheError`s; bugs are assertions.
 */
export const reasons = {
  BadRequest: { http: 400 },
  Forbidden: { http: 403 },
  NotFound: { http: 404 },
  MethodNotAllowed: { http: 405 },
  NotAcceptable: { http: 406 },
  AlreadyExists: { http: 409 },
  Conflict: { http: 409 },
  Expired: { http: 410 },
  RequestEntityTooLarge: { http: 413 },
  UnsupportedMediaType: { http: 415 },
  ExpectationFailed: { http: 417 },
  Invalid: { http: 422 },
  TooManyRequests: { http: 429 },
  InternalError: { http: 500 },
  ServerTimeout: { http: 500 },
  ServiceUnavailable: { http: 503 },
  Timeout: { http: 504 },
} as const;

export type Reason = keyof typeof reasons;

export type Cause = Readonly<{ reason?: string; message: string; field?: string }>;

/** `kind` holds the plural resource, except where Kubernetes has the Kind. */
export type RefusalDetails = Readonly<{
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: readonly Cause[];
  retryAfterSeconds?: number;
}>;

export type Refusal = Readonly<{
  reason: Reason;
  message: string;
  details?: RefusalDetails;
  /** A token to continue with at the newest revision; only with Expired. */
  continue?: string;
}>;

/** Whose messages quote what was sent, which may be anything. */
const quoting: readonly Reason[] = ['BadRequest', 'Invalid'];

/** What a log may say of a refusal: never what a body holds. `fields`: those that are wrong. */
export function loggedRefusal({
  reason,
  message,
  details,
}: Refusal): Readonly<{ reason: Reason; message?: string; fields?: readonly string[] }> {
  if (!quoting.includes(reason)) return { reason, message };
  const fields = (details?.causes ?? []).flatMap(({ field }) => (field === undefined ? [] : [field]));
  return { reason, ...(fields.length > 0 && { fields }) };
}

/** A refusal on its way to the one place that answers it. */
export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.name = 'Refused';
    this.refusal = refusal;
  }
}

/** A fault: something around this process failed. Logged where it is handled, never retried silently. */
export class CacheError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CacheError';
  }
}

export function badRequest(message: string): Refusal {
  return { reason: 'BadRequest', message };
}

/** 429: the caller comes back after a second. `what` there is too much of. */
export function tooManyRequests(what: string): Refusal {
  return { reason: 'TooManyRequests', message: `${what}, please try again later`, details: { retryAfterSeconds: 1 } };
}

/** 410: the history before `compacted` is gone, or the version was never ours. */
export function expired(message: string): Refusal {
  return { reason: 'Expired', message };
}

/** 504, without Retry-After: a client drops the version and starts over at once. */
export function resourceVersionTooLarge(wanted: string, current: string): Refusal {
  return {
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
  };
}

/** A switch that gets here has met a member that its union does not have. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}

/** One clear line with every cause: its reader has no log yet. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${explain(error.cause)}`;
}
