/**
 * Runs `strata push` as an operator does: a child process with a certificate for its shard alone. A
 * test can kill it and start it again.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { builtMain } from './project.js';
import type { StrataProcess } from './strata-process.js';
import type { Certificate } from './test-authority.js';
import { pidOf, spawn } from './children.js';

/** `urls`: the URLs at which the agent reaches the cache; by default the cache's own. */
export type AgentOptions = Readonly<{
  shard: string;
  kubeconfig: string;
  context?: string;
  urls?: readonly string[];
  flags?: readonly string[];
}>;

const stopMsMax = 15_000;
const logCharactersShown = 2_000;

export class AgentProcess {
  readonly logFile: string;
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(
    cache: StrataProcess,
    certificate: Certificate,
    { shard, kubeconfig, context, urls = [cache.url], flags = [] }: AgentOptions,
  ) {
    this.logFile = join(cache.folder, `agent-${shard}.log`);
    this.#arguments = [
      'push',
      `--kubeconfig=${kubeconfig}`,
      ...(context === undefined ? [] : [`--context=${context}`]),
      `--shard-name=${shard}`,
      ...urls.map((url) => `--cache=${url}`),
      `--cache-ca-file=${join(cache.dataFolder, 'apiserver.crt')}`,
      `--cert-file=${certificate.certificateFile}`,
      `--key-file=${certificate.keyFile}`,
      ...flags,
    ];
  }

  static async start(cache: StrataProcess, options: AgentOptions): Promise<AgentProcess> {
    const certificate = cache.authority.issue({
      user: `shard-${options.shard}`,
      groups: ['strata'],
      uris: [`strata://shard/${options.shard}`],
    });
    const agent = new AgentProcess(cache, certificate, options);
    agent.resume();
    return agent;
  }

  /** Throws if the agent does not run. */
  get pid(): number {
    return pidOf(this.#child);
  }

  resume(): void {
    if (this.#child !== undefined) throw new Error('the agent is running already');
    const log = openSync(this.logFile, 'a');
    this.#child = spawn(builtMain(), this.#arguments, { stdio: ['ignore', log, log] });
    closeSync(log);
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Sends SIGTERM; resolves with the exit code. */
  async stop(): Promise<number | null> {
    return this.#end('SIGTERM');
  }

  /** Rejects with the end of the agent's log when the agent exits by itself. */
  async failed(): Promise<never> {
    const child = this.#child;
    if (child?.exitCode === null && child.signalCode === null) await once(child, 'exit');
    if (child === undefined || child !== this.#child) return new Promise<never>(() => {});
    throw new Error(`strata push ended with ${child.exitCode ?? child.signalCode}: ${(await this.log()).slice(-logCharactersShown)}`);
  }

  async log(): Promise<string> {
    return readFile(this.logFile, 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
    return child.exitCode;
  }
}
