/**
 * Controls a load generator. A job that takes longer than jobMsMax fails, and its process is
 * killed.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { JobName, Jobs } from './jobs.js';

const jobMsMax = 600_000;

export type LoadRequest =
  | Readonly<{ id: number; kind: 'ask'; name: JobName; job: Jobs[JobName][0] }>
  | Readonly<{ id: number; kind: 'tell'; value: number }>;

export type LoadReply =
  | Readonly<{ id: number; kind: 'ready' }>
  | Readonly<{ id: number; kind: 'answer'; value: Jobs[JobName][1]; busy: number }>
  | Readonly<{ id: number; kind: 'failed'; message: string }>;

/** A job under way. Both promises reject if it fails. */
export type Running<Answer> = Readonly<{ ready: Promise<void>; answer: Promise<Answer>; send: (value: number) => void }>;

type Waiting = { ready: PromiseWithResolvers<void>; answer: PromiseWithResolvers<Jobs[JobName][1]>; late: NodeJS.Timeout };
type PromiseWithResolvers<T> = Readonly<{ promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void }>;

export class LoadProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #busy = 0;

  constructor() {
    this.#child = fork(fileURLToPath(new URL('./load-generator.js', import.meta.url)), [], { serialization: 'advanced', execArgv: [] });
    this.#child.on('message', (reply: LoadReply) => this.#take(reply));
    this.#child.on('exit', (code, signal) => this.#failAll(new Error(`the load generator ended: ${signal ?? code}`)));
    this.#child.on('error', (error) => this.#failAll(error));
  }

  /**
   * The share of one processor that the last job used. Near 1 it measured the client, not the
   * server.
   */
  get busy(): number {
    return this.#busy;
  }

  async ask<Name extends JobName>(name: Name, job: Jobs[Name][0]): Promise<Jobs[Name][1]> {
    return await this.begin(name, job).answer;
  }

  begin<Name extends JobName>(name: Name, job: Jobs[Name][0]): Running<Jobs[Name][1]> {
    const id = (this.#asked += 1);
    const late = setTimeout(() => this.#child.kill('SIGKILL'), jobMsMax);
    const waiting: Waiting = { ready: withResolvers(), answer: withResolvers(), late };
    this.#waiting.set(id, waiting);
    this.#send({ id, kind: 'ask', name, job });
    return {
      ready: waiting.ready.promise,
      // The generator answers with the type that belongs to the name. The protocol has one table
      // for both.
      answer: waiting.answer.promise as Promise<Jobs[Name][1]>,
      send: (value) => this.#send({ id, kind: 'tell', value }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #send(asked: LoadRequest): void {
    if (this.#child.connected) this.#child.send(asked);
    else this.#failAll(new Error('the load generator is gone'));
  }

  #take(reply: LoadReply): void {
    const waiting = this.#waiting.get(reply.id);
    if (waiting === undefined) return;
    switch (reply.kind) {
      case 'ready':
        waiting.ready.resolve();
        return;
      case 'answer':
        this.#settle(reply.id, waiting);
        this.#busy = reply.busy;
        waiting.ready.resolve();
        waiting.answer.resolve(reply.value);
        return;
      case 'failed':
        this.#settle(reply.id, waiting);
        waiting.ready.reject(new Error(reply.message));
        waiting.answer.reject(new Error(reply.message));
    }
  }

  #failAll(error: Error): void {
    for (const [id, waiting] of this.#waiting) {
      this.#settle(id, waiting);
      waiting.ready.reject(error);
      waiting.answer.reject(error);
    }
  }

  #settle(id: number, { late }: Waiting): void {
    clearTimeout(late);
    this.#waiting.delete(id);
  }
}

/**
 * A caller may ignore either promise, so a rejection of the ignored one must not end the process.
 */
function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}
