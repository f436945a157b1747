/**
 * A real kcp of two shards, with a virtual-workspace server for each and a front proxy, started by
 * kcp's own sharded-test-server. That also starts the cache server, with the flags of kcp's own
 * one.
 *
 *   sharded-test-server ─▶ supervisor (a shell script) ─▶ the cache server
 *                      └─▶ kcp ×2, virtual-workspaces ×2, kcp-front-proxy
 *
 * sharded-test-server gives up when the cache server ends, so it starts a script that starts the
 * server again whenever it ends, as a kubelet would. A file has the server's pid. Ports are kcp's:
 * 2379–2382, 6443–6445, 7444, 7445, 8010–8012. All files are in one folder, and all processes are
 * stopped by pid.
 *
 * If a test passes a kubeconfig of a cache for each shard, no cache server is started. A script in
 * front of kcp then gives each shard its own cache.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runProgram } from '../clients/installed.js';
import { freeze, thaw } from '../support/freeze.js';
import { KubeClient } from '../support/kube-client.js';
import { builtMain } from '../support/project.js';
import { isReady, pidIn, readFrom, stop } from './live-processes.js';
import { cacheServerScript, choosingScript, frontProxyScript, shardScript } from './shell-scripts.js';
import { spawn } from '../support/children.js';

const readyMsMax = 240_000;
const stopMsMax = 60_000;
const testMsMax = 600_000;
const pollMs = 500;
export const cacheUrl = 'https://127.0.0.1:8012';
const firstShardPort = 6444;
const frontProxyPort = 6443;
const frontProxyUrl = `https://127.0.0.1:${frontProxyPort}`;

/** The feature gates of kcp's own Makefile for tests on two shards. */
const featureGates = 'WorkspaceMounts=true,CacheAPIs=true,WorkspaceAuthentication=true,LogicalClusterMigration=true';

export const neededBinaries = [
  'kcp',
  'kcp-front-proxy',
  'virtual-workspaces',
  'sharded-test-server',
  'e2e-reconciler-cache.test',
  'e2e-cache.test',
] as const;

export type LiveKcpOptions = Readonly<{
  /** Starts a shard again when it ends. */
  restartsShards?: boolean;
  /** Runs Strata's front door in place of kcp's own, with these environment variables. */
  frontDoor?: Readonly<Record<string, string>>;
  /** More environment variables of the cache server. */
  cacheVariables?: Readonly<Record<string, string>>;
  /**
   * The front proxy, Strata's or kcp's, checks tokens itself, by the same file and key as the
   * shards.
   */
  checksTokens?: boolean;
  /**
   * Called once the shards are ready. Strata's front door becomes ready only after their entries
   * have arrived.
   */
  shardsReady?: (kcp: LiveKcp) => Promise<void>;
}>;

/** The size of each log, by file name. */
export type LogEnds = ReadonlyMap<string, number>;

/** `code`: the exit code of the test program, 0 only if every test of it passed. */
export type TestOutcome = Readonly<{ code: number; passed: readonly string[]; failed: readonly string[]; output: string }>;

type LiveKcpParts = Readonly<{ binaries: string; folder: string; server: ChildProcess; cacheKubeconfigs: readonly string[] }>;

export class LiveKcp {
  readonly #binaries: string;
  readonly #folder: string;
  readonly #server: ChildProcess;
  readonly #cacheKubeconfigs: readonly string[];

  private constructor({ binaries, folder, server, cacheKubeconfigs }: LiveKcpParts) {
    this.#binaries = binaries;
    this.#folder = folder;
    this.#server = server;
    this.#cacheKubeconfigs = cacheKubeconfigs;
  }

  /**
   * Starts everything and waits until kcp reports that tests may begin. `cacheKubeconfigs`: one for
   * each shard's own cache, in the order of the shards.
   */
  static async start(
    binaries: string,
    cacheKubeconfigs: readonly string[] = [],
    { restartsShards = false, frontDoor, cacheVariables = {}, checksTokens = false, shardsReady }: LiveKcpOptions = {},
  ): Promise<LiveKcp> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-kcp-'));
    await mkdir(join(folder, '.kcp'));
    await mkdir(join(folder, 'logs'));
    const script = async (name: string, text: string): Promise<string> => {
      await writeFile(join(folder, name), text, { mode: 0o755 });
      return join(folder, name);
    };
    const choosing = (program: string): Promise<string> => script(program, choosingScript(join(binaries, program), cacheKubeconfigs));

    const log = openSync(join(folder, 'sharded-test-server.log'), 'a');
    const flags = [
      '--quiet',
      '--v=2',
      `--log-dir-path=${join(folder, 'logs')}`,
      `--work-dir-path=${folder}`,
      '--shard-run-virtual-workspaces=false',
      `--shard-feature-gates=${featureGates}`,
      `--proxy-feature-gates=${featureGates}`,
      '--number-of-shards=2',
      // At level 3 a reflector logs when it lists; the virtual-workspace servers already run at 4.
      '--shard-v=3',
      ...(checksTokens ? tokenFlags(folder) : []),
      ...cacheKubeconfigs.slice(0, 1).map((file) => `--cache-kubeconfig=${file}`),
    ];
    const environment = {
      NO_GORUN: '1',
      UNSAFE_E2E_HACK_DISABLE_ETCD_FSYNC: 'true',
      KCP_ASSET_KCP: restartsShards ? await script('kcp', shardScript(folder, join(binaries, 'kcp'))) : await choosing('kcp'),
      KCP_ASSET_KCP_FRONT_PROXY:
        frontDoor === undefined ? join(binaries, 'kcp-front-proxy') : await script('kcp-front-proxy', frontProxyScript(folder, frontDoor)),
      KCP_ASSET_VIRTUAL_WORKSPACES: await choosing('virtual-workspaces'),
      KCP_ASSET_CACHE_SERVER: await script('cache-server', cacheServerScript(folder, cacheVariables)),
    };
    const server = spawn(join(binaries, 'sharded-test-server'), flags, {
      cwd: folder,
      stdio: ['ignore', log, log],
      env: { ...process.env, ...environment },
    });
    closeSync(log);

    const kcp = new LiveKcp({ binaries, folder, server, cacheKubeconfigs });
    try {
      const areReady = async (): Promise<boolean> => (await isReady(firstShardPort)) && (await isReady(firstShardPort + 1));
      await kcp.#until(areReady, readyMsMax, 'the shards to be ready');
      await shardsReady?.(kcp);
      await kcp.#until(() => existsSync(join(folder, '.kcp', 'ready-to-test')), readyMsMax, 'kcp to be ready');
      return kcp;
    } catch (error) {
      const end = (await readFile(join(folder, 'sharded-test-server.log'), 'utf8')).slice(-3_000);
      await kcp[Symbol.asyncDispose]();
      throw new Error(`kcp did not start:\n${end}`, { cause: error });
    }
  }

  /**
   * Runs tests of one of kcp's compiled test programs. They read the cache of the shard with this
   * number.
   */
  async test(
    program: `e2e-${string}.test`,
    pattern: string,
    { cache = 0, skipped }: Readonly<{ cache?: number; skipped?: string | undefined }> = {},
  ): Promise<TestOutcome> {
    const shards = `root=${join(this.#folder, '.kcp-0/admin.kubeconfig')},shard-1=${join(this.#folder, '.kcp-1/admin.kubeconfig')}`;
    const flags = [
      '-test.v',
      `-test.run=${pattern}`,
      ...(skipped === undefined ? [] : [`-test.skip=^${skipped}$`]),
      '-test.timeout=10m',
      `--kcp-kubeconfig=${join(await this.#asSeenFrom(cache), '.kcp/admin.kubeconfig')}`,
      `--shard-kubeconfigs=${shards}`,
    ];
    const { code, stdout, stderr } = await runProgram(join(this.#binaries, program), flags, {
      cwd: this.#folder,
      // Some tests start a kcp of their own, or plugins of kubectl.
      environment: { NO_GORUN: '1', PATH: `${this.#binaries}:${process.env['PATH'] ?? ''}` },
      timeoutMs: testMsMax,
    });
    const named = (result: string): readonly string[] =>
      [...stdout.matchAll(new RegExp(`^\\s*--- ${result}: (\\S+)`, 'gm'))].map((match) => match[1]!);
    return { code, passed: named('PASS'), failed: named('FAIL'), output: stdout + stderr };
  }

  /** Kills the cache server with SIGKILL; resolves when the supervisor has started it again. */
  async killCache(): Promise<void> {
    await this.#kill('cache');
  }

  /**
   * Kills a shard with SIGKILL; resolves when it reports that it is ready again. Needs
   * `restartsShards`.
   */
  async killShard(shard: number): Promise<void> {
    await this.#kill(shardProgram(shard));
    await this.#until(() => isReady(firstShardPort + shard), readyMsMax, `shard ${shard} to be ready again`);
  }

  /** The pid of a shard. Needs `restartsShards`. */
  async shardPid(shard: number): Promise<number> {
    return pidIn(this.file(`${shardProgram(shard)}.pid`));
  }

  /**
   * Kills Strata's front door with SIGKILL; resolves when it is ready again, with the milliseconds
   * that took.
   */
  async killFrontDoor(): Promise<number> {
    const killedMs = performance.now();
    await this.#kill('front-proxy');
    await this.#until(() => isReady(frontProxyPort), readyMsMax, 'the front door to be ready again');
    return performance.now() - killedMs;
  }

  /**
   * Kills the cache server with SIGKILL and runs `act` before the supervisor starts it again.
   * Resolves when it runs.
   */
  async whileCacheIsDown(act: () => Promise<void>): Promise<void> {
    await this.#kill('cache', act);
  }

  /**
   * Kills a shard and runs `act` before it is started again; resolves when it reports that it is
   * ready. Needs `restartsShards`.
   */
  async whileShardIsDown(shard: number, act: () => Promise<void>): Promise<void> {
    await this.#kill(shardProgram(shard), act);
    await this.#until(() => isReady(firstShardPort + shard), readyMsMax, `shard ${shard} to be ready again`);
  }

  /** Kills a program, runs `meanwhile`, and resolves when the supervisor has started it again. */
  async #kill(program: string, meanwhile?: () => Promise<void>): Promise<void> {
    const file = this.file(`${program}.pid`);
    const supervisor = await pidIn(this.file(`${program}-supervisor.pid`));
    const before = await pidIn(file);
    await freeze(supervisor);
    try {
      process.kill(before, 'SIGKILL');
      await meanwhile?.();
    } finally {
      thaw(supervisor);
    }
    await this.#until(async () => (await pidIn(file)) !== before, readyMsMax, `the supervisor to start ${program} again`);
  }

  /** Runs `strata …` on the store of the cache server; rejects if it fails. */
  async strata(...words: readonly string[]): Promise<string> {
    const environment = { STRATA_ROOT_DIRECTORY: this.file('.kcp-cache') };
    const { code, stdout, stderr } = await runProgram(process.execPath, [builtMain(), ...words], { environment, timeoutMs: stopMsMax });
    if (code !== 0) throw new Error(`strata ${words.join(' ')} exited with ${code}: ${stderr}`);
    return stdout;
  }

  async cachePid(): Promise<number> {
    return pidIn(this.file('cache.pid'));
  }

  /** Where every log ends at this moment, for `logsSince`. */
  async logEnds(): Promise<LogEnds> {
    const folder = join(this.#folder, 'logs');
    const names = (await readdir(folder)).filter((name) => name.endsWith('.log') && !name.includes('audit'));
    return new Map(await Promise.all(names.map(async (name) => [name, (await stat(join(folder, name))).size] as const)));
  }

  /** What kcp's shards and virtual-workspace servers have logged since then. */
  async logsSince(ends: LogEnds): Promise<string> {
    const names = [...ends.keys()].filter((name) => /^kcp-(\d|virtual)/.test(name));
    return (await Promise.all(names.map((name) => readFrom(join(this.#folder, 'logs', name), ends.get(name) ?? 0)))).join('\n');
  }

  /** The path of a file in kcp's working folder. */
  file(path: string): string {
    return join(this.#folder, path);
  }

  /** A client of the cache with kcp's own certificate; the caller closes it. */
  async cacheClient(): Promise<KubeClient> {
    const folder = join(this.#folder, '.kcp-cache');
    const [certificate, key] = await Promise.all([
      readFile(join(folder, 'cache-client.crt'), 'utf8'),
      readFile(join(folder, 'cache-client.key'), 'utf8'),
    ]);
    return new KubeClient({ url: cacheUrl, certificate, key });
  }

  /** One metric of the cache server; only Strata has it. */
  async cacheMetric(name: string): Promise<number> {
    const client = await this.cacheClient();
    try {
      const { text } = await client.raw('GET', '/metrics');
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    } finally {
      client.close();
    }
  }

  /** A client of kcp's front proxy with all rights; the caller closes it. */
  async client(): Promise<KubeClient> {
    const [certificate, key] = await Promise.all(['crt', 'key'].map((end) => readFile(this.file(`.kcp/kcp-admin.${end}`), 'utf8')));
    return new KubeClient({ url: frontProxyUrl, certificate: certificate ?? '', key: key ?? '' });
  }

  /**
   * A folder that makes kcp's tests use the cache of the shard with this number: the tests look for
   * the cache's kubeconfig beside kcp's own.
   */
  async #asSeenFrom(cache: number): Promise<string> {
    const kubeconfig = this.#cacheKubeconfigs[cache];
    const folder = this.file(`seen-from-${cache}`);
    if (kubeconfig === undefined) return this.#folder;
    if (existsSync(folder)) return folder;
    await mkdir(join(folder, '.kcp-cache'), { recursive: true });
    await copyFile(kubeconfig, join(folder, '.kcp-cache/cache.kubeconfig'));
    await symlink(this.file('.kcp'), join(folder, '.kcp'));
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.exitCode === null && this.#server.signalCode === null) {
      const exited = once(this.#server, 'exit');
      this.#server.kill('SIGTERM');
      const late = setTimeout(() => this.#server.kill('SIGKILL'), stopMsMax);
      await exited;
      clearTimeout(late);
    }
    // sharded-test-server kills supervisors, not the processes that they have started.
    const pids = (await readdir(this.#folder)).filter((name) => name.endsWith('.pid'));
    for (const name of pids.toSorted((a, b) => Number(b.includes('supervisor')) - Number(a.includes('supervisor'))))
      await stop(join(this.#folder, name));
    if (process.env['TEST_KEEP'] === undefined) await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #until(condition: () => boolean | Promise<boolean>, withinMs: number, what: string): Promise<void> {
    for (const deadline = performance.now() + withinMs; !(await condition()); await sleep(pollMs)) {
      if (this.#server.exitCode !== null)
        throw new Error(`sharded-test-server exited with ${this.#server.exitCode} while we waited for ${what}`);
      if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    }
  }
}

/** Flags of the front proxy: how sharded-test-server has its shards check tokens. */
function tokenFlags(folder: string): readonly string[] {
  return [
    `--proxy-token-auth-file=${join(folder, '.kcp-0/auth-tokens.csv')}`,
    `--proxy-service-account-key-file=${join(folder, '.kcp/service-account.crt')}`,
    '--proxy-service-account-lookup=false',
  ];
}

/** The name that the supervisor script gives the shard. */
function shardProgram(shard: number): string {
  return `shard-${firstShardPort + shard}`;
}
