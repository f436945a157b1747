/**
 * The real server in this process, as `startServer` opens it: with its own port and data folder,
 * and a fresh CA whose master certificate its clients use. A test narrows bounds by flags, as an
 * operator would.
 *
 * `hurried` makes the server's time run faster, so that waits of seconds take tenths; HTTP requests
 * still take real time.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../src/clock.js';
import { followedByFrontDoor } from '../../src/config/kcp-flags/front-proxy-flags.js';
import { PolicyFile } from '../../src/config/files/policy-file.js';
import { loadSettings, type SettingsSources } from '../../src/config/settings.js';
import type { Log } from '../../src/diagnostics/log.js';
import type { Clock } from '../../src/domain/ports.js';
import type { FrontDoorSettings } from '../../src/server/open-front-door.js';
import { startServer, type RunningServer, type ServerParts } from '../../src/server/server.js';
import { startCommitterHere } from './committer-here.js';
import { KubeClient, type KubeClientOptions } from './kube-client.js';
import { copyCertificate, copyDatabase, keepCertificate } from './made-before.js';
import { isUnused } from './free-ports.js';
import { TestAuthority, type Certificate } from './test-authority.js';

export type TestServerOptions = Readonly<{
  flags?: Readonly<Record<string, string>>;
  clock?: Clock;
  /**
   * The text of its configuration file; a function if the test rewrites the file while the server
   * runs.
   */
  config?: string | (() => string);
  /** Makes it the front door of an installation instead of a cache. */
  frontDoor?: FrontDoorSettings;
  /** Servers that know each other share it; by default each has its own. */
  authority?: TestAuthority;
}>;

export type Logged = Readonly<{ level: 'debug' | 'info' | 'warn' | 'error'; event: string; fields: unknown }>;

type Parts = Readonly<{ folder: string; running: RunningServer; authority: TestAuthority; master: Certificate; logged: readonly Logged[] }>;

/**
 * TEST_COMMITTER=thread: the committer has a thread of its own, as in production; else it uses the
 * test's thread (`committer-here.ts`).
 */
const startCommitter = process.env['TEST_COMMITTER'] === 'thread' ? undefined : startCommitterHere;

export class TestServer {
  readonly authority: TestAuthority;
  readonly master: Certificate;
  readonly logged: readonly Logged[];
  readonly #folder: string;
  readonly #running: RunningServer;
  readonly #clients = new Set<KubeClient>();
  #client: KubeClient | undefined;
  #stopped: Promise<void> | undefined;

  private constructor({ folder, running, authority, master, logged }: Parts) {
    this.#folder = folder;
    this.#running = running;
    this.authority = authority;
    this.master = master;
    this.logged = logged;
  }

  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-server-'));
    const authority = options.authority ?? new TestAuthority(folder);
    try {
      return await TestServer.#run({ folder, authority, master: authority.master }, options);
    } catch (error) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      throw error;
    }
  }

  static async #run(
    { folder, authority, master }: Pick<Parts, 'folder' | 'authority' | 'master'>,
    { flags = {}, clock = systemClock, config, frontDoor }: TestServerOptions,
  ): Promise<TestServer> {
    const sources: SettingsSources = {
      flags: {
        'root-directory': join(folder, 'root'),
        'bind-address': '127.0.0.1',
        'secure-port': '0',
        'client-ca-file': authority.certificateFile,
        ...(config === undefined ? {} : { config: 'strata.yaml' }),
        // Timeouts of connections must not run by the server's faster clock, because peers live in
        // real time.
        ...(clock === systemClock
          ? {}
          : { 'keep-alive-timeout': '1h', 'pong-timeout': '10m', 'request-timeout': '1h', 'write-timeout': '1h' }),
        ...flags,
      },
      environment: {},
      readFile: () => (typeof config === 'function' ? config() : (config ?? '')),
      ...(frontDoor !== undefined && { followed: followedByFrontDoor }),
    };
    const settings = loadSettings(sources);
    const logged: Logged[] = [];
    const log = recording(logged);
    const watchPolicies: ServerParts['watchPolicies'] = (publish) => PolicyFile.watch({ clock, log, sources, running: settings }, publish);
    const { etcdServers, dataDirectory, certificateDirectory, bindAddress, tlsCertFile } = settings;
    assert(settings.securePort < 32_768, 'a port that the system gives away by itself may be taken: freePorts()');
    const makesCertificate = tlsCertFile === undefined && bindAddress === '127.0.0.1' && clock === systemClock;
    // A former server's socket may be held for a moment (`isUnused`).
    if (settings.securePort > 0) await until(() => isUnused(settings.securePort));
    if (etcdServers.length === 0) copyDatabase(dataDirectory);
    if (makesCertificate) copyCertificate(certificateDirectory);
    performance.mark('server started');
    const running = await startServer(settings, { log, clock, random: Math.random, watchPolicies, frontDoor, startCommitter });
    if (makesCertificate) keepCertificate(certificateDirectory);
    return new TestServer({ folder, running, authority, master, logged });
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** The serving certificate and its CA, PEM: what a client trusts. */
  get certificate(): string {
    return readFileSync(this.certificateFile, 'utf8');
  }

  get certificateFile(): string {
    return join(this.#folder, 'root', 'apiserver.crt');
  }

  get databaseFile(): string {
    return join(this.#folder, 'root', 'data', 'strata.db');
  }

  get port(): number {
    return this.#running.port;
  }

  /**
   * A client with the given certificate, by default one of system:masters; `null` means none. It is
   * closed with the server. Without options every call returns the same client, so that repeated
   * requests share its connection.
   */
  client(
    options?: Omit<KubeClientOptions, 'url' | 'certificate' | 'key'> & { as?: Pick<Certificate, 'certificate' | 'key'> | null },
  ): KubeClient {
    if (options === undefined) return (this.#client ??= this.client({}));
    const { as = this.master, ...rest } = options;
    const client = new KubeClient({ ...rest, url: this.url, ...(as === null ? {} : { certificate: as.certificate, key: as.key }) });
    this.#clients.add(client);
    return client;
  }

  /** The sum of all series of a metric. */
  async metric(name: string): Promise<number> {
    const { text } = await this.client().raw('GET', '/metrics');
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map(([, value]) => Number(value));
    return values.reduce((sum, value) => sum + value, 0);
  }

  async untilNoWatch(withinMs?: number): Promise<void> {
    await until(async () => (await this.metric('strata_watches_open')) === 0, withinMs);
  }

  /** Stops, and starts another server on the same folder and CA; this one need not be closed. */
  async restart(options: TestServerOptions = {}): Promise<TestServer> {
    for (const client of this.#clients) client.close();
    await this.stop();
    return TestServer.#run({ folder: this.#folder, authority: this.authority, master: this.master }, options);
  }

  stop(): Promise<void> {
    return (this.#stopped ??= this.#running.stop());
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** What closes things at its end: a test, or a file of tests that share them. */
export type Teardown = Pick<ExecutionContext, 'teardown'>;

/** A server for one test, closed with the test. */
export async function aServer(t: Teardown, options?: TestServerOptions): Promise<TestServer> {
  const server = await TestServer.start(options);
  t.teardown(() => server.close());
  return server;
}

/**
 * Resolves once the condition holds; rejects when it does not in time. Pass a shorter `withinMs`
 * only if what the test rules out would take longer.
 */
export async function until(condition: () => boolean | Promise<boolean>, withinMs = 50_000): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > withinMs) throw new Error(`not in ${withinMs} ms`);
    await sleep(Math.min(Math.max(10, waitedMs / 20), 100));
  }
}

/** The real clock with shorter delays. */
export function hurried(factor: number): Clock {
  return {
    now: () => systemClock.now(),
    wallMs: () => systemClock.wallMs(),
    after: (delayMs, task) => systemClock.after(delayMs / factor, task),
  };
}

/**
 * The real clock, and how many of its tasks wait: each keeps its data in memory and the process
 * alive.
 */
export function counting(): Clock & { readonly pending: number } {
  let pending = 0;
  return {
    ...systemClock,
    get pending() {
      return pending;
    },
    after(delayMs, task) {
      let isPending = true;
      const over = (): void => {
        if (isPending) pending -= 1;
        isPending = false;
      };
      pending += 1;
      const cancel = systemClock.after(delayMs, () => {
        over();
        task();
      });
      return () => {
        over();
        cancel();
      };
    },
  };
}

/** A clock that runs so many times as fast, except for the time of day. */
export function quickened(factor: number): Clock {
  return { ...hurried(factor), now: () => systemClock.now() * factor };
}

function recording(logged: Logged[]): Log {
  const at =
    (level: Logged['level']) =>
    (event: string, fields?: unknown): void =>
      void logged.push({ level, event, fields });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}
