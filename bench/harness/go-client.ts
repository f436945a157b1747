/**
 * The client of every question over HTTP: bench/go-client, built once for a run, one process for
 * each measurement.
 *
 * It is written in Go because the controllers and informers of kcp are, and because it needs less
 * processor time than the server. A client in JavaScript takes as much as the server, so on two
 * cores it would measure itself. It supports HTTP/2 and HTTP/1.1. There is no second client in
 * JavaScript, because figures of two clients cannot be compared. Without Go these questions are
 * skipped. Bounds: a job ends after jobMsMax.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { installed, runProgram } from '../../test/clients/installed.js';
import { projectFile } from '../../test/support/project.js';
import type { CacheTarget } from './cache-target.js';
import type { GoJob, GoMeasured, GoStep } from './go-job.js';
import { readProcessorMs } from './process-usage.js';

const buildMsMax = 300_000;
const jobMsMax = 600_000;

/** `processorMs`: of the server, from `begin` to `end`; NaN if its process is unknown. */
export type Loaded = GoMeasured & Readonly<{ processorMs: number }>;

export class GoClient {
  readonly version: string;
  readonly #program: string;
  readonly #objectsFile: string;

  private constructor(program: string, objectsFile: string, version: string) {
    this.#program = program;
    this.#objectsFile = objectsFile;
    this.version = version;
  }

  /** Undefined if Go is not installed. */
  static async build(folder: string, objectsFile: string): Promise<GoClient | undefined> {
    const version = await installed('go', 'version');
    if (version === undefined) return undefined;
    const program = join(folder, 'go-client');
    const { code, stderr } = await runProgram('go', ['build', '-o', program, '.'], {
      cwd: projectFile('bench', 'go-client'),
      environment: { CGO_ENABLED: '0' },
      timeoutMs: buildMsMax,
    });
    if (code !== 0) throw new Error(`the Go client cannot be built: ${stderr.slice(-1_000)}`);
    return new GoClient(program, objectsFile, version);
  }

  /**
   * Runs one job. The job waits while `atStep` inspects the server. Rejects if any answer is wrong.
   */
  async run(target: CacheTarget, job: GoJob, atStep: (step: GoStep) => Promise<void> = async () => {}): Promise<Loaded> {
    const child = spawn(this.#program, [], { stdio: ['pipe', 'pipe', 'pipe'] });
    const late = setTimeout(() => child.kill('SIGKILL'), jobMsMax);
    const kill = (): void => void child.kill('SIGKILL');
    process.once('exit', kill);
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    child.stdin.on('error', () => {});
    const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    try {
      child.stdin.write(`${JSON.stringify({ ...addressOf(target), objects: this.#objectsFile, ...job })}\n`);
      let [before, processorMs] = [Number.NaN, Number.NaN];
      let measured: GoMeasured | undefined;
      for await (const line of createInterface({ input: child.stdout })) {
        const message = JSON.parse(line) as Readonly<{ step: GoStep }> | GoMeasured;
        if (!('step' in message)) {
          measured = message;
          continue;
        }
        if (message.step === 'end') processorMs = (await processorMsOf(target)) - before;
        await atStep(message.step);
        if (message.step === 'begin') before = await processorMsOf(target);
        child.stdin.write('\n');
      }
      const [code, signal] = await exited;
      if (measured === undefined || code !== 0)
        throw new Error(`the Go client ended with ${signal ?? code} (${target.role}, ${job.kind}): ${errors.slice(-1_000)}`);
      if (measured.wrong > 0) throw new Error(`${measured.wrong} answers of ${target.role} were wrong: ${measured.firstWrong}`);
      return { ...measured, processorMs };
    } finally {
      clearTimeout(late);
      process.removeListener('exit', kill);
      kill();
    }
  }
}

async function processorMsOf({ pid }: CacheTarget): Promise<number> {
  return pid === undefined ? Number.NaN : await readProcessorMs(pid);
}

function addressOf({ url, caFile = '', certFile = '', keyFile = '', token = '' }: CacheTarget) {
  return { server: url, ca: caFile, cert: certFile, key: keyFile, token };
}
