/** The server answered the upgrade with a plain HTTP error. Any other failure is a CacheError. */
export class UpgradeRefused extends Error {
  readonly httpCode: number;
  /**
   * The reason of the Status in the body. '' if the body is no Status: then an intermediary
   * answered, not a cache.
   */
  readonly reason: string;
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
