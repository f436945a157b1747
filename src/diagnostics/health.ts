/**
 * Whether the server is alive and ready, in the format of Kubernetes' health endpoints, which
 * probes and people know.
 *
 * The endpoints answer everybody. So they show "reason withheld" for a failed check, unless its
 * reason is public. `failures` has the reason, for the log. Checks are synchronous, because a probe
 * must never wait for the checked part.
 */
import type { Clock } from '../domain/ports.js';
import { BoundedLog } from './bounded-log.js';
import type { Log } from './log.js';

export const healthEndpoints = ['healthz', 'livez', 'readyz'] as const;
export type HealthEndpoint = (typeof healthEndpoints)[number];

/**
 * `failure` returns the reason, or undefined if the check passes. `isPublic`: the endpoint may show
 * the reason.
 */
export type HealthCheck = Readonly<{ name: string; failure: () => string | undefined; isPublic?: boolean }>;

type HealthReport = Readonly<{
  status: 200 | 500;
  text: string;
  failures: readonly Readonly<{ name: string; reason: string }>[];
}>;

/**
 * `verbose`: the query has the parameter, with any value. `excluded`: the values of every
 * `exclude`.
 */
export type HealthQuery = Readonly<{ verbose: boolean; excluded: readonly string[] }>;

export function healthQueryOf(query: URLSearchParams): HealthQuery {
  return { verbose: query.has('verbose'), excluded: query.getAll('exclude') };
}

export function report(endpoint: HealthEndpoint, checks: readonly HealthCheck[], { verbose, excluded }: HealthQuery): HealthReport {
  const failures: { name: string; reason: string }[] = [];
  const lines = checks.map(({ name, failure, isPublic = false }) => {
    if (excluded.includes(name)) return `[+]${name} excluded: ok\n`;
    const reason = failure();
    if (reason === undefined) return `[+]${name} ok\n`;
    failures.push({ name, reason });
    return `[-]${name} failed: ${isPublic ? reason : 'reason withheld'}\n`;
  });

  const unknown = [...new Set(excluded)].filter((name) => !checks.some((check) => check.name === name)).toSorted();
  if (unknown.length > 0)
    lines.push(`warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => JSON.stringify(name)).join(',')}\n`);

  if (failures.length > 0) return { status: 500, text: `${lines.join('')}${endpoint} check failed\n`, failures };
  return { status: 200, text: verbose ? `${lines.join('')}${endpoint} check passed\n` : 'ok', failures };
}

/**
 * The checks of one server. `livez` says whether a restart would help, `readyz` whether it accepts
 * clients. `healthz` is the old name of `livez`.
 */
export class Health {
  readonly #live: HealthCheck[] = [{ name: 'ping', failure: () => undefined }];
  readonly #ready: HealthCheck[] = [];
  #stopping = false;

  /** Both endpoints run the checks of `livez`, only `readyz` its own. */
  add(checkedBy: 'livez' | 'readyz', check: HealthCheck): void {
    (checkedBy === 'livez' ? this.#live : this.#ready).push(check);
  }

  /**
   * Makes `readyz` fail, so that no new clients connect. The server still serves present clients.
   */
  beginShutdown(): void {
    this.#stopping = true;
  }

  get isReady(): boolean {
    return this.report('readyz', { verbose: false, excluded: [] }).status === 200;
  }

  report(endpoint: HealthEndpoint, query: HealthQuery): HealthReport {
    return report(endpoint, endpoint === 'readyz' ? [...this.#live, ...this.#ready, this.#shutdown()] : this.#live, query);
  }

  #shutdown(): HealthCheck {
    return { name: 'shutdown', failure: () => (this.#stopping ? 'process is shutting down' : undefined) };
  }
}

/**
 * Logs failed health checks. Everybody may request health, as often as they like. So each check of
 * an endpoint logs at most one line in ten seconds, with the number of failures meanwhile.
 *
 * Bound: the checks that the server has declared.
 */
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
