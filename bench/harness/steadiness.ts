/**
 * How steady the machine was: the processor time of a fixed piece of work, repeated during a run.
 * The work is always the same, so its variation is the machine's. No figure can repeat better than
 * that.
 */
import { percentile } from './statistics.js';

/** Processor time of the work, in milliseconds. */
export type Steadiness = Readonly<{ p10Ms: number; p50Ms: number; p90Ms: number; samples: number }>;

const objects = 200;
const timesParsed = 60;
const warmUps = 20;
const microsecondsPerMs = 1_000;

export class SteadinessMeter {
  readonly #work = JSON.stringify(
    Array.from({ length: objects }, (_, i) => ({ name: `n-${i}`, labels: { tier: `t-${i % 7}`, list: [i, 'x'] } })),
  );
  readonly #samplesMs: number[] = [];

  constructor() {
    for (let i = 0; i < warmUps; i++) this.#run();
  }

  /** Takes some 10 ms of this process. */
  sample(): void {
    const before = process.cpuUsage();
    this.#run();
    const { user, system } = process.cpuUsage(before);
    this.#samplesMs.push((user + system) / microsecondsPerMs);
  }

  read(): Steadiness {
    const [p10Ms, p50Ms, p90Ms] = [0.1, 0.5, 0.9].map((share) => percentile(this.#samplesMs, share)) as [number, number, number];
    return { p10Ms, p50Ms, p90Ms, samples: this.#samplesMs.length };
  }

  #run(): void {
    for (let i = 0; i < timesParsed; i++) JSON.parse(this.#work);
  }
}
