/** `strata push` as an operator starts it: a child process with a certificate for its shard. Its log is shown when it ends by itself. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { builtMain } from '../../test/support/project.js';
import type { StrataProcess } from '../../test/support/strata-process.js';

const stopMsMax = 10_000;
const logCharactersShown = 2_000;

export class AgentProcess {
  /** Rejects when it ends before it is asked to. */
  readonly failed: Promise<never>;
  readonly #child: ChildProcess;
  #stopping = false;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.failed = once(child, 'exit').then(async ([code]) => {
      if (this.#stopping) return await new Promise<never>(() => {});
      const log = await readFile(logFile, 'utf8');
      throw new Error(`strata push ended with ${String(code)}: ${log.slice(-logCharactersShown)}`);
    });
    this.failed.catch(() => {});
  }

  static async start(server: StrataProcess, { shard, kubeconfig }: Readonly<{ shard: string; kubeconfig: string }>): Promise<AgentProcess> {
    const { certificateFile, keyFile } = await server.authority.issue({
      user: shard,
      groups: ['strata'],
      uris: [`strata://shard/${shard}`],
    });
    const logFile = join(server.folder, `${shard}.log`);
    await rm(logFile, { force: true });
    const log = openSync(logFile, 'a');
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--shard-name=${shard}`,
      `--cache=${server.url}`,
      `--cache-ca-file=${join(server.dataFolder, 'apiserver.crt')}`,
      `--cert-file=${certificateFile}`,
      `--key-file=${keyFile}`,
    ];
    const child = spawn(builtMain(), ['push', ...flags], { cwd: server.folder, stdio: ['ignore', log, log] });
    closeSync(log);
    return new AgentProcess(child, logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#stopping = true;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
  }
}
