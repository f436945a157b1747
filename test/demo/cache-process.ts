/**
 * One cache of a shape, run as an operator runs it: `strata serve --config FILE` in a folder with
 * the certificates that the file names. It can be killed and started again on its data.
 *
 * Bounds: it must be ready within readyMsMax, else the error has the end of its log; SIGKILL
 * follows SIGTERM after stopMsMax. It ends with this process, unless this process is killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { KubeClient } from '../support/kube-client.js';
import { builtMain } from '../support/project.js';

export type CacheProcessOptions = Readonly<{
  name: string;
  folder: string;
  port: number;
  flags: readonly string[];
  admin: Readonly<{ certificate: string; key: string }>;
}>;

type TreeReported = Readonly<{ complete?: boolean; parent?: { connection?: { kind?: string } } | null }>;

const readyMsMax = 60_000;
const stopMsMax = 10_000;
const pollMs = 25;
const logCharactersShown = 2_000;

export class CacheProcess {
  readonly name: string;
  readonly url: string;
  readonly client: KubeClient;
  readonly #options: CacheProcessOptions;
  readonly #killAtExit = (): void => void this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;

  constructor(options: CacheProcessOptions) {
    const { name, port, admin } = options;
    this.#options = options;
    this.name = name;
    this.url = `https://127.0.0.1:${port}`;
    this.client = new KubeClient({ url: this.url, ...admin });
    process.once('exit', this.#killAtExit);
  }

  /** Resolves once the cache is ready to serve. */
  async start(signal: AbortSignal): Promise<void> {
    const { folder, flags } = this.#options;
    const log = openSync(this.#logFile, 'a');
    const child = spawn(builtMain(), ['serve', ...flags], { cwd: folder, stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    const deadline = performance.now() + readyMsMax;
    while (!(await this.#isReady())) {
      signal.throwIfAborted();
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (hasEnded || performance.now() > deadline)
        throw new Error(
          `the cache ${this.name} ${hasEnded ? 'ended' : 'did not get ready'}:\n${(await this.#log()).slice(-logCharactersShown)}`,
        );
      await pause(pollMs, undefined, { signal });
    }
  }

  /** Whether it reports itself connected to its parent. */
  async followsParent(): Promise<boolean> {
    return (await this.#tree())?.parent?.connection?.kind === 'connected';
  }

  /** Whether it reports that it knows every shard of the tree. */
  async isComplete(): Promise<boolean> {
    return (await this.#tree())?.complete === true;
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async close(): Promise<void> {
    this.client.close();
    await this.#end('SIGTERM');
    process.removeListener('exit', this.#killAtExit);
  }

  async #tree(): Promise<TreeReported | undefined> {
    const { text } = await this.client.raw('GET', '/services/cache/status');
    return (JSON.parse(text) as { tree?: TreeReported }).tree;
  }

  async #end(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(how);
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
  }

  /**
   * The server must present our certificate: another program that took the port meanwhile cannot.
   */
  async #isReady(): Promise<boolean> {
    const answer = await this.client.raw('GET', '/services/cache/status', { timeoutMs: 1_000 }).catch(() => undefined);
    return answer?.status === 200 && (JSON.parse(answer.text) as { cache: { ready: boolean } }).cache.ready;
  }

  get #logFile(): string {
    return join(this.#options.folder, `${this.name}.log`);
  }

  async #log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }
}
