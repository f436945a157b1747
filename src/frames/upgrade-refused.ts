/** The server answered the upgrade with a plain HTTP refusal. Any other failure is a CacheError. */
export class UpgradeRefused extends Error {
  readonly httpCode: number;
  /** From its Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(httpCode: number, message: string, retryAfterMs: number | undefined) {
    super(message);
    this.name = 'UpgradeRefused';
    this.httpCode = httpCode;
    this.retryAfterMs = retryAfterMs;
  }
}
