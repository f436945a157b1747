/**
 * A well-behaved client beside hostile ones. It reads or changes one object again and again over
 * one warm HTTP/2 connection, and measures each answer. It runs in a thread of its own, so that the
 * work of the test does not count as the server's delay.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Certificate } from './test-authority.js';

export type BystanderData = Readonly<{ url: string; certificate: string; key: string; path: string; intervalMs: number; writes: boolean }>;

/**
 * Times are in milliseconds. `failed` counts the requests that got no answer or another status than
 * 200.
 */
export type Delays = Readonly<{ asked: number; failed: number; p50: number; p99: number; max: number; failures: readonly string[] }>;

export type BystanderReport = Readonly<{ delaysMs: readonly number[]; failures: readonly string[] }>;

const intervalMs = 10;

export class Bystander {
  readonly #worker: Worker;
  readonly #began: Promise<void>;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.#began = once(worker, 'message').then(() => {});
  }

  /** Resolves once the connection is warm; earlier answers do not count. */
  static async start(
    of: Readonly<{ url: string; as: Pick<Certificate, 'certificate' | 'key'>; path: string; writes?: boolean }>,
  ): Promise<Bystander> {
    const workerData: BystanderData = {
      url: of.url,
      certificate: of.as.certificate,
      key: of.as.key,
      path: of.path,
      intervalMs,
      writes: of.writes ?? false,
    };
    const bystander = new Bystander(new Worker(new URL('./bystander-thread.js', import.meta.url), { workerData }));
    await bystander.#began;
    return bystander;
  }

  /** The delays since the start, or since the last call. */
  async delays(): Promise<Delays> {
    const answer = once(this.#worker, 'message') as Promise<[BystanderReport]>;
    this.#worker.postMessage('report');
    const [{ delaysMs, failures }] = await answer;
    const sorted = delaysMs.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Infinity;
    return {
      asked: sorted.length,
      failed: failures.length,
      p50: at(0.5),
      p99: at(0.99),
      max: sorted.at(-1) ?? Infinity,
      failures: failures.slice(0, 5),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

export function formatDelays({ asked, failed, p50, p99, max }: Delays): string {
  return `${asked} asked, ${failed} failed, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(0)} ms`;
}
