/**
 * Builds and runs the Go program beside this file: client-go's own informers, controlled by
 * commands on standard input (see main.go). Send one command at a time; the program ends when its
 * input ends.
 */
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { StrataProcess } from '../support/strata-process.js';
import type { Certificate } from '../support/test-authority.js';
import { buildGoProgram } from './installed.js';
import { spawn } from '../support/children.js';

const buildMsMax = 300_000;

export type Requests = Readonly<{ list: number; watch: number; watchList: number }>;
export type Comparison = Readonly<{ name: string; objects: number; differences: readonly string[] }>;

/**
 * Result of steady writes, and how long after its sending each version reached every informer.
 * `backwards`: where a store went back in time.
 */
export type Lived = Readonly<{
  writes: number;
  refused: Readonly<Record<string, number>>;
  writeP99Ms: number;
  seen: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** Versions that an informer saw after more than 100 ms. */
  late: number;
  backwards: readonly string[];
}>;

export type InformerOptions = Readonly<{
  watchList: boolean;
  /** The certificate of the informers; by default the writer's. */
  readAs?: Certificate;
}>;

type Message = Readonly<{ event: string; informers?: unknown; requests?: unknown; lived?: unknown }>;

/** Returns the reason if the program cannot be built (no Go, no modules). */
export function buildInformerProgram(folder: string): Promise<{ program: string } | { why: string }> {
  return buildGoProgram(join(folder, 'clients'), { source: '.', timeoutMs: buildMsMax });
}

export class InformerProgram {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** Starts the informers and waits until all have synced. */
  static async start(program: string, server: StrataProcess, { watchList, readAs }: InformerOptions): Promise<InformerProgram> {
    const flags = [
      `--server=${server.url}`,
      `--cert=${server.master.certificateFile}`,
      `--key=${server.master.keyFile}`,
      ...(readAs === undefined ? [] : [`--reader-cert=${readAs.certificateFile}`, `--reader-key=${readAs.keyFile}`]),
    ];
    const child = spawn(program, flags, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, KUBE_FEATURE_WatchListClient: String(watchList) },
    });
    const running = new InformerProgram(child);
    await running.#answer('synced');
    return running;
  }

  /** Creates, changes and deletes objects of every type. */
  async write(): Promise<void> {
    await this.#send('write', 'written');
  }

  /** Writes one object after the other for this many seconds. */
  async live(seconds: number): Promise<Lived> {
    return (await this.#send(`live ${seconds}`, 'lived')).lived as Lived;
  }

  /**
   * Compares every informer's store with the server's list, once they are equal or the program
   * gives up waiting.
   */
  async compare(): Promise<readonly Comparison[]> {
    return (await this.#send('compare', 'compared')).informers as readonly Comparison[];
  }

  /** What each informer has requested since the last call. */
  async count(): Promise<Readonly<Record<string, Requests>>> {
    return (await this.#send('count', 'counted')).requests as Readonly<Record<string, Requests>>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await exited;
    clearTimeout(late);
    this.#lines.close();
  }

  async #send(command: string, event: string): Promise<Message> {
    this.#child.stdin.write(`${command}\n`);
    return await this.#answer(event);
  }

  async #answer(event: string): Promise<Message> {
    const line = await this.#answers.next();
    if (line.done === true) throw new Error(`the informers ended before they answered ${event}`);
    const message = JSON.parse(line.value) as Message;
    if (message.event !== event) throw new Error(`the informers answered ${line.value} instead of ${event}`);
    return message;
  }
}
