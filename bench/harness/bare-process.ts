/** Controls a bare server, which runs as a child process. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Authority } from '../../src/certificates/authority.js';
import { systemClock } from '../../src/clock.js';
import type { Target } from './client.js';

const answerMsMax = 10_000;

export type BareServerAsked =
  | Readonly<{ kind: 'listen'; certificatePem: string; keyPem: string }>
  | (Readonly<{ kind: 'store' }> & BareStore);

/**
 * `file`: the database for pushed frames. `tuned`: SQLite is set as the measured server sets it.
 */
type BareStore = Readonly<{ file: string; framesPerCommitMax: number; tuned: boolean }>;

/** `bare-server` answers HTTP from memory. `bare-push-server` receives pushed frames. */
type Program = 'bare-server' | 'bare-push-server';

export type BareServerReply = Readonly<{ kind: 'listening'; port: number }> | Readonly<{ kind: 'serving' }>;

export class BareProcess {
  readonly target: Target;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, target: Target) {
    this.#child = child;
    this.target = target;
  }

  /** Clients show it the same certificate as the measured server. It does not check it. */
  static async start(client: Pick<Target, 'certificate' | 'key'>, program: Program = 'bare-server'): Promise<BareProcess> {
    const authority = await Authority.create({ clock: systemClock }, { name: 'bench', validityDays: 1 });
    const serving = await authority.issueServing({ names: ['127.0.0.1'], validityDays: 1 });
    const child = fork(fileURLToPath(new URL(`${program}.js`, import.meta.url)), [], { execArgv: [] });
    const bare = new BareProcess(child, { ...client, port: 0 });
    const reply = await bare.#ask({ kind: 'listen', ...serving });
    if (reply.kind !== 'listening') throw new Error('the bare server does not listen');
    return new BareProcess(child, { ...client, port: reply.port });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** From now on pushed frames go into the new database `into.file`. */
  async store(into: BareStore): Promise<void> {
    await this.#ask({ kind: 'store', ...into });
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
