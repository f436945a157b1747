/**
 * `strata proxy` as a child process below a cache. It keeps its port and its data when a test kills
 * it and starts it again.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../support/free-ports.js';
import { KubeClient } from '../support/kube-client.js';
import { builtMain } from '../support/project.js';
import type { StrataProcess } from '../support/strata-process.js';
import { pidOf, spawn } from '../support/children.js';

/** Files that kcp's own front proxy is started with. */
export type FrontDoorFiles = Readonly<{ mapping: string; clientCa: string; certificate: string; key: string }>;

/** Flags and environment variables beyond the required ones. */
type FrontDoorOptions = Readonly<{ flags?: readonly string[]; environment?: Readonly<Record<string, string>> }>;

const readyMsMax = 30_000;
const stopMsMax = 15_000;
const pollMs = 50;

export class FrontDoorProcess {
  readonly url: string;
  readonly logFile: string;
  readonly #arguments: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;

  private constructor(port: number, logFile: string, flags: readonly string[], environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
    this.url = `https://127.0.0.1:${port}`;
    this.logFile = logFile;
    this.#arguments = ['proxy', '--bind-address=127.0.0.1', `--secure-port=${port}`, ...flags];
  }

  static async start(
    cache: StrataProcess,
    files: FrontDoorFiles,
    { flags = [], environment = {} }: FrontDoorOptions = {},
  ): Promise<FrontDoorProcess> {
    const [port] = await freePorts(1);
    const link = cache.authority.issue({ user: 'door', groups: ['strata'], uris: ['strata://cache/door'] });
    const door = new FrontDoorProcess(
      port!,
      join(cache.folder, 'door.log'),
      [
        `--root-directory=${join(cache.folder, 'door')}`,
        `--mapping-file=${files.mapping}`,
        `--client-ca-file=${files.clientCa}`,
        `--tls-cert-file=${files.certificate}`,
        `--tls-private-key-file=${files.key}`,
        `--parent-urls=${cache.url}`,
        `--parent-ca-file=${cache.certificateFile}`,
        `--parent-cert-file=${link.certificateFile}`,
        `--parent-key-file=${link.keyFile}`,
        ...flags,
      ],
      environment,
    );
    await door.resume();
    return door;
  }

  /** Throws if the process does not run. */
  get pid(): number {
    return pidOf(this.#child);
  }

  /** Starts the process. Resolves with the milliseconds until /readyz answers 200. */
  async resume(): Promise<number> {
    const startedMs = performance.now();
    const log = openSync(this.logFile, 'a');
    const child = spawn(process.execPath, [builtMain(), ...this.#arguments], {
      stdio: ['ignore', log, log],
      env: { ...process.env, ...this.#environment },
    });
    this.#child = child;
    closeSync(log);
    const probe = new KubeClient({ url: this.url });
    try {
      while ((await probe.raw('GET', '/readyz', { timeoutMs: 1_000 }).catch(() => undefined))?.status !== 200) {
        if (child.exitCode !== null || performance.now() - startedMs > readyMsMax)
          throw new Error(`the front door is not ready:\n${(await readFile(this.logFile, 'utf8')).slice(-4_000)}`);
        await sleep(pollMs);
      }
      return performance.now() - startedMs;
    } finally {
      probe.close();
    }
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
  }
}
