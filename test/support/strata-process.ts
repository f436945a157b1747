/**
 * The server as an operator starts it: a child process with a data folder of its own. Clients reach
 * it over TLS with a certificate of system:masters. It keeps its port and its data across
 * `restart`, so clients can resume.
 *
 * With TEST_SERVER=/path/to/cache-server, tests start that program instead, with the same flags.
 * Run against kcp's own cache server, this tests the tests: they then expect its behaviour where
 * Strata differs on purpose (`isForeign`). No part of such a program belongs into this repository.
 *
 * Bounds: it must start within startMsMax, else the error has the end of the log; SIGKILL follows
 * SIGTERM after stopMsMax.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from './free-ports.js';
import { KubeClient, type KubeClientOptions } from './kube-client.js';
import { builtMain } from './project.js';
import { TestAuthority, type Certificate } from './test-authority.js';
import { pidOf, spawn } from './children.js';

const startMsMax = 30_000;
const stopMsMax = 15_000;
const pollMs = 50;
const logCharactersShown = 4_000;

export type StrataProcessOptions = Readonly<{
  /** Flags after those that upstream has too. */
  flags?: readonly string[];
  /** The text of its configuration file. */
  config?: string;
  /** Servers that know each other share it; by default each has its own. */
  authority?: TestAuthority;
  /** Another program that takes the same flags, instead of this build. */
  program?: string;
  /** Variables of the child, in addition to our own. */
  environment?: Readonly<Record<string, string>>;
}>;

export class StrataProcess {
  readonly folder: string;
  readonly dataFolder: string;
  readonly logFile: string;
  readonly authority: TestAuthority;
  readonly master: Certificate;
  readonly port: number;
  readonly #command: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #clients = new Set<KubeClient>();
  #child: ChildProcess | undefined;

  private constructor(
    made: Readonly<{
      folder: string;
      authority: TestAuthority;
      master: Certificate;
      ports: readonly number[];
      options: StrataProcessOptions;
    }>,
  ) {
    const [port, etcdClientPort, etcdPeerPort] = made.ports;
    const program = foreignServer ?? made.options.program;
    this.folder = made.folder;
    this.dataFolder = join(made.folder, 'data');
    this.logFile = join(made.folder, 'server.log');
    this.authority = made.authority;
    this.master = made.master;
    this.port = port!;
    this.#environment = made.options.environment ?? {};
    this.#command = [
      ...(program === undefined ? [builtMain(), 'cache-server'] : [program]),
      `--root-directory=${this.dataFolder}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${this.port}`,
      `--client-ca-file=${this.authority.certificateFile}`,
      '--synthetic-delay=0s',
      `--embedded-etcd-client-port=${etcdClientPort}`,
      `--embedded-etcd-peer-port=${etcdPeerPort}`,
      ...(made.options.config === undefined ? [] : [`--config=${configFileOf(made.folder)}`]),
      ...(made.options.flags ?? []),
    ];
  }

  /** Starts a new server on an empty folder; resolves once it is ready. */
  static async start(options: StrataProcessOptions = {}): Promise<StrataProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-test-'));
    const authority = options.authority ?? new TestAuthority(folder);
    if (options.config !== undefined) await writeFile(configFileOf(folder), options.config);
    const master = authority.issue({ user: 'cache-client', groups: ['system:masters'] });
    const server = new StrataProcess({ folder, authority, master, ports: await freePorts(3), options });
    try {
      await server.resume();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** The serving certificate, which is self-signed: children and pushers trust it. */
  get certificateFile(): string {
    return join(this.dataFolder, 'apiserver.crt');
  }

  get certificate(): string {
    return readFileSync(this.certificateFile, 'utf8');
  }

  /** Throws if the server does not run. */
  get pid(): number {
    return pidOf(this.#child);
  }

  /**
   * A client with the given certificate, by default one of system:masters; `null` means none. It is
   * closed with the server.
   */
  client(options: Omit<KubeClientOptions, 'url' | 'certificate' | 'key'> & { as?: Certificate | null } = {}): KubeClient {
    const { as = this.master, ...rest } = options;
    const client = new KubeClient({ ...rest, url: this.url, ...(as === null ? {} : { certificate: as.certificate, key: as.key }) });
    this.#clients.add(client);
    return client;
  }

  /**
   * Starts the child on its existing data. Rejects, and kills it, when it is not ready in time.
   * `environment` applies to this start only.
   */
  async resume(withinMs = startMsMax, environment: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.#child !== undefined) throw new Error('the server is running already');
    const log = openSync(this.logFile, 'a');
    const [program, ...flags] = this.#command;
    // The server trusts only what its flags name. Node would read all certificates of this variable
    // at its start, a machine's hundreds.
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: undefined, ...this.#environment, ...environment };
    this.#child = spawn(program!, flags, { cwd: this.folder, stdio: ['ignore', log, log], env });
    closeSync(log);
    await this.#ready(this.#child, withinMs);
  }

  /**
   * Resolves when the child ends by itself, with its exit code or the signal that ended it. It can
   * be started again after that.
   */
  async ended(): Promise<NodeJS.Signals | number | null> {
    const child = this.#child;
    if (child === undefined) throw new Error('no server is running');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    if (this.#child === child) this.#child = undefined;
    return child.signalCode ?? child.exitCode;
  }

  /**
   * Sends SIGTERM: the server ends its clients' connections in order and exits. Resolves with the
   * exit code.
   */
  async stop(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    this.#child = undefined;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;

    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    // A failed test may have left it frozen.
    child.kill('SIGCONT');
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
    return child.exitCode;
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = once(child, 'exit');
    if (child.kill('SIGKILL')) await exited;
  }

  async restart(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await (how === 'SIGTERM' ? this.stop() : this.kill());
    await this.resume();
  }

  /** Everything that the server has printed, across restarts. */
  async log(): Promise<string> {
    return await readFile(this.logFile, 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.stop();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #ready(child: ChildProcess, withinMs: number): Promise<void> {
    const probe = this.client();
    const deadline = performance.now() + withinMs;
    for (;;) {
      const answer = await probe.raw('GET', '/readyz', { timeoutMs: 1_000 }).catch(() => undefined);
      const dead = child.exitCode !== null || child.signalCode !== null;
      if (!dead && answer?.status === 200) break;
      if (dead || performance.now() > deadline) {
        await this.kill();
        throw new Error(
          `the server ${dead ? 'exited' : 'was not ready'} (${this.#command.join(' ')}):\n${(await this.log()).slice(-logCharactersShown)}`,
        );
      }
      await sleep(pollMs);
    }
    probe.close();
    this.#clients.delete(probe);
  }
}

function configFileOf(folder: string): string {
  return join(folder, 'strata.yaml');
}

const foreignServer = process.env['TEST_SERVER'];

/** Whether the tests run against another program, whose behaviour they then expect. */
export const isForeign = foreignServer !== undefined;
