/** The server answered the upgrade with a plain HTTP refusal. Any other failure is a CacheError. */
export class UpgradeRefused extends Error {
  readonly httpCode: number;
  /** Of the Status in its body; '' if that is none: then somebody on the way has answered, and no cache. */
  readonly reason: string;
  /** From its Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(
    httpCode: number,
    message: string,
    { reason = '', retryAfterMs }: { reason?: string; retryAfterMs?: number | undefined } = {},
  ) {
    super(message);
    this.name = 'UpgradeRefused';
    this.httpCode = httpCode;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
