/** The server answered the upgrade with plain HTTP: it has decided, and says what. Anything else that fails is a CacheError. */
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
