/**
 * Reads the server's own measurements of its event loop during the whole run.
 *
 * strata_event_loop_delay_p99_seconds is that of the last whole window, so frequent reading loses
 * nothing. nodejs_eventloop_lag_max_seconds restarts with each reading and includes the monitor's
 * own resolution. Bounds: one request at a time, sampleEveryMs apart. A server without these
 * metrics gives no samples.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../test/support/kube-client.js';
import { metric } from './metrics-text.js';

/**
 * Rare, because a sample takes milliseconds of the server's processor time, which other figures
 * then include.
 */
const sampleEveryMs = 2_000;
const requestMsMax = 10_000;
/** prom-client's monitor wakes up every 10 ms and includes them in its figure. */
const monitorResolutionMs = 10;

export type LoopSample = Readonly<{ atMs: number; p99Ms: number; maxMs: number }>;

export class LoopSampler {
  readonly #client: KubeClient;
  readonly #stop = new AbortController();
  readonly #samples: LoopSample[] = [];
  readonly #sampling: Promise<void>;
  #paused = 0;

  constructor(client: KubeClient) {
    this.#client = client;
    this.#sampling = this.#sample();
  }

  get samples(): readonly LoopSample[] {
    return this.#samples;
  }

  /** Takes no sample while the task runs. */
  async quietly<Result>(task: () => Promise<Result>): Promise<Result> {
    this.#paused += 1;
    try {
      return await task();
    } finally {
      this.#paused -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#sampling;
  }

  async #sample(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (this.#paused > 0) {
        await sleep(sampleEveryMs, undefined, { signal: this.#stop.signal }).catch(() => {});
        continue;
      }
      const answer = await this.#client
        .raw('GET', '/metrics', { timeoutMs: requestMsMax, signal: this.#stop.signal })
        .catch(() => undefined);
      const p99Ms = metricMs(answer?.text ?? '', 'strata_event_loop_delay_p99_seconds');
      const maxMs = metricMs(answer?.text ?? '', 'nodejs_eventloop_lag_max_seconds');
      if (!Number.isNaN(p99Ms)) this.#samples.push({ atMs: performance.now(), p99Ms, maxMs: Math.max(0, maxMs - monitorResolutionMs) });
      await sleep(sampleEveryMs, undefined, { signal: this.#stop.signal }).catch(() => {});
    }
  }
}

function metricMs(text: string, name: string): number {
  return metric(text, name) * 1_000;
}
