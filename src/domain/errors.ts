/**
 * Why a request is refused. A check returns a refusal as a value, or throws it as `Refused`;
 * web/formats/status.ts makes it a Status. Faults are `CacheError`s; bugs are assertions.
 */
import { formatGroupResource } from './resource.js';

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

export function invalidValue(field: string, value: string | bigint, flaw: string): Cause {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${shown}: ${flaw}`, field };
}

export function tooLong(field: string, bytesMax: number): Cause {
  return { reason: 'FieldValueTooLong', message: `Too long: may not be more than ${bytesMax} bytes`, field };
}

/** `kind` is the plural resource, except where Kubernetes puts the Kind. */
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
  /** A token with which the client continues at the newest revision; only with Expired. */
  continue?: string;
}>;

/** Messages with these reasons quote the request, so they may contain anything. */
const quoting: readonly Reason[] = ['BadRequest', 'Invalid'];

/**
 * The part of a refusal that may be logged, without content of bodies. `fields`: the invalid ones.
 */
export function loggedRefusal({
  reason,
  message,
  details,
}: Refusal): Readonly<{ reason: Reason; message?: string; fields?: readonly string[] }> {
  if (!quoting.includes(reason)) return { reason, message };
  const fields = (details?.causes ?? []).flatMap(({ field }) => (field === undefined ? [] : [field]));
  return { reason, ...(fields.length > 0 && { fields }) };
}

/** Carries a refusal to the one place that answers it. */
export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.name = 'Refused';
    this.refusal = refusal;
  }
}

/**
 * A fault: something outside this process failed. Its handler logs it; no code retries silently.
 */
export class CacheError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CacheError';
  }
}

export function badRequest(message: string): Refusal {
  return { reason: 'BadRequest', message };
}

/**
 * 429: the caller should retry after a second. `what`: the reason, with which the message begins.
 */
export function tooManyRequests(what: string): Refusal {
  return { reason: 'TooManyRequests', message: `${what}, please try again later`, details: { retryAfterSeconds: 1 } };
}

export function entityTooLarge(bytesMax: number): Refused {
  return new Refused({ reason: 'RequestEntityTooLarge', message: `Request entity too large: limit is ${bytesMax}` });
}

/**
 * 410: the history after the client's version is compacted, or this store never gave that version.
 */
export function expired(message: string): Refusal {
  return { reason: 'Expired', message };
}

/** 504 without Retry-After, so that the client drops its version and lists again at once. */
export function resourceVersionTooLarge(wanted: string, current: string): Refusal {
  return {
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
  };
}

export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}

/** One line: the messages of the error and of its causes. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${explain(error.cause)}`;
}

/** A body of 3 MiB could have hundreds of thousands of invalid fields; nobody needs more causes. */
const causesMax = 100;

/** The invalid object. `kind` is the Kind, or the plural resource where Kubernetes puts that. */
type Subject = Readonly<{ group: string; kind: string; name: string }>;

/** Builds a 422, worded like apimachinery's aggregate of field errors. */
export function invalid({ group, kind, name }: Subject, all: readonly Cause[]): Refusal {
  const causes = all.slice(0, causesMax);
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return {
    reason: 'Invalid',
    message: `${formatGroupResource({ group, resource: kind })} ${JSON.stringify(name)} is invalid: ${list}`,
    details: { ...(name !== '' && { name }), ...(group !== '' && { group }), kind, causes },
  };
}
