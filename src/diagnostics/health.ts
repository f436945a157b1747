/**
 * Whether the server lives and is ready, in the form of kube's own endpoints, because probes and people read them.
 *
 * The endpoints answer everybody, so a failed check shows "reason withheld" there and its reason only in `failures`,
 * for the log, unless the reason is no secret. Checks are synchronous: a probe must never wait for what it asks about.
 */
export const healthEndpoints = ['healthz', 'livez', 'readyz'] as const;
export type HealthEndpoint = (typeof healthEndpoints)[number];

/** `failure` gives the reason, or nothing when all is well. `isPublic`: everybody may read it. */
export type HealthCheck = Readonly<{ name: string; failure: () => string | undefined; isPublic?: boolean }>;

export type HealthReport = Readonly<{
  status: 200 | 500;
  text: string;
  failures: readonly Readonly<{ name: string; reason: string }>[];
}>;

/** The query's `verbose` is set when the parameter is there at all; `excluded` are the values of every `exclude`. */
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

/** The checks of one server. `livez` says whether a restart would help, `readyz` whether to send clients; `healthz` is its old name for livez. */
export class Health {
  readonly #live: HealthCheck[] = [{ name: 'ping', failure: () => undefined }];
  readonly #ready: HealthCheck[] = [];
  #stopping = false;

  /** Adds a check that both endpoints show, or one that only readiness waits for. */
  add(checkedBy: 'livez' | 'readyz', check: HealthCheck): void {
    (checkedBy === 'livez' ? this.#live : this.#ready).push(check);
  }

  /** From here on no new clients should come, while present ones are served to the end. */
  beginShutdown(): void {
    this.#stopping = true;
  }

  /** What /readyz answers. */
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
