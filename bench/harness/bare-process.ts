/** The bare server as a child process, seen from the benchmark. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Authority } from '../../src/certificates/authority.js';
import { systemClock } from '../../src/clock.js';
import type { Target } from './client.js';

const answerMsMax = 10_000;

export type BareServerAsked =
  | Readonly<{ kind: 'listen'; certificatePem: string; keyPem: string }>
  | Readonly<{ kind: 'serve'; listFile?: string; watchListFile?: string }>;

export type BareServerReply = Readonly<{ kind: 'listening'; port: number }> | Readonly<{ kind: 'serving' }>;

export class BareProcess {
  readonly target: Target;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, target: Target) {
    this.#child = child;
    this.target = target;
  }

  /** Clients show it the certificate that they show to the measured server, and it does not look. */
  static async start(client: Pick<Target, 'certificate' | 'key'>): Promise<BareProcess> {
    const authority = await Authority.create({ clock: systemClock }, { name: 'bench', validityDays: 1 });
    const serving = await authority.issueServing({ names: ['127.0.0.1'], validityDays: 1 });
    const child = fork(fileURLToPath(new URL('bare-server.js', import.meta.url)), [], { execArgv: [] });
    const bare = new BareProcess(child, { ...client, port: 0 });
    const reply = await bare.#ask({ kind: 'listen', ...serving });
    if (reply.kind !== 'listening') throw new Error('the bare server does not listen');
    return new BareProcess(child, { ...client, port: reply.port });
  }

  async serve(files: Readonly<{ listFile?: string; watchListFile?: string }>): Promise<void> {
    await this.#ask({ kind: 'serve', ...files });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  async #ask(asked: BareServerAsked): Promise<BareServerReply> {
    const answered = once(this.#child, 'message', { signal: AbortSignal.timeout(answerMsMax) });
    this.#child.send(asked);
    const [reply] = (await answered) as [BareServerReply];
    return reply;
  }
}
