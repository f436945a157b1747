/**
 * Logs failed health checks. Everybody may ask for health, as often as they like. So each check of
 * an endpoint logs one line in ten seconds, with the number of failures meanwhile. Bound: the
 * checks that the server has declared.
 */
import type { Clock } from '../domain/ports.js';
import { BoundedLog } from './bounded-log.js';
import type { HealthEndpoint, HealthReport } from './health.js';
import type { Log } from './log.js';

export class HealthLog {
  readonly #parts: Readonly<{ clock: Clock; log: Log }>;
  readonly #logs = new Map<string, BoundedLog>();

  constructor(parts: Readonly<{ clock: Clock; log: Log }>) {
    this.#parts = parts;
  }

  failed(endpoint: HealthEndpoint, { failures }: HealthReport): void {
    for (const { name, reason } of failures) {
      const check = `${endpoint} ${name}`;
      const log = this.#logs.get(check) ?? new BoundedLog(this.#parts, { linesMax: 1 });
      this.#logs.set(check, log);
      log.warn('health.failed', { endpoint, name, reason });
    }
  }
}
