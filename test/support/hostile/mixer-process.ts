/** Runs the mixer in a process of its own, beside a test, until the test disposes of it. */
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Certificate } from '../test-authority.js';
import { spawn } from '../children.js';

const program = fileURLToPath(new URL('./mixer-main.js', import.meta.url));
const outputCharactersMax = 4_000;
const stopMsMax = 5_000;

export type MixerProcessOptions = Readonly<{
  url: string;
  /** The identity of the clients that are not anonymous. */
  as: Certificate;
  seed: string;
  /** After this long the process ends by itself. */
  secondsMax: number;
}>;

export class MixerProcess {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  #output = '';

  private constructor(flags: readonly string[]) {
    this.#child = spawn(process.execPath, [program, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.on('data', (text: Buffer) => (this.#output = (this.#output + text.toString()).slice(-outputCharactersMax)));
  }

  static start({ url, as, seed, secondsMax }: MixerProcessOptions): MixerProcess {
    return new MixerProcess([
      `--url=${url}`,
      `--cert=${as.certificateFile}`,
      `--key=${as.keyFile}`,
      `--seed=${seed}`,
      `--seconds=${secondsMax}`,
    ]);
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The end of its output: which bad clients started, and why it ended. */
  get output(): string {
    return this.#output;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
    await exited;
    clearTimeout(late);
  }
}
