/**
 * Works on whole documents in a separate thread, so that such work never delays the serving thread.
 *
 *   light ─────────────────────────────▶ done at once, in the calling thread
 *   heavy ─▶ queue, owners take turns ─▶ the thread
 *
 * Most patches and updates have a few kilobytes. To send these to the thread would cost more than
 * the work itself.
 *
 * Bounds: tasks up to `lightBytesMax` are light. The queue has its own bounds. A task may run for
 * `taskTimeMaxMs`, and the thread may use `threadMemoryMaxMiB`. If the queue is full, the answer is
 * 429. If a task exceeds its time or the thread's memory, the answer is 413 and the thread
 * restarts.
 *
 * There is only one thread, because each may use `threadMemoryMaxMiB`. It ends after `idleMs`
 * without work.
 */
import type { Log } from '../diagnostics/log.js';
import { CacheError, Refused, tooManyRequests, type Refusal } from '../domain/errors.js';
import type { HeavyResult, HeavyTask } from '../domain/heavy-task.js';
import { bytesOf, performTask, weightOf } from './perform-task.js';
import { mustParse } from '../domain/parsed.js';
import type { Clock, HeavyWork, HeavyWorks } from '../domain/ports.js';
import { Piscina } from 'piscina';
import { FairQueue, type FairQueueLimits } from './fair-queue.js';
import type { Crossing } from './heavy-worker.js';

export type HeavyLimits = FairQueueLimits &
  Readonly<{ lightBytesMax: number; taskTimeMaxMs: number; threadMemoryMaxMiB: number; idleMs: number }>;

type Waiting = Readonly<{ task: HeavyTask; settle: (done: Promise<Crossing>) => void }>;

const youngMaxMiB = 16;

export class HeavyThread implements HeavyWorks {
  readonly #clock: Clock;
  readonly #limits: HeavyLimits;
  readonly #queue: FairQueue<Waiting>;
  readonly #pool: Piscina<HeavyTask, Crossing>;
  #isBusy = false;

  constructor({ clock, log }: Readonly<{ clock: Clock; log: Pick<Log, 'warn'> }>, limits: HeavyLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#queue = new FairQueue(limits);
    this.#pool = new Piscina({
      filename: new URL('./heavy-worker.js', import.meta.url).href,
      name: 'perform',
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: limits.idleMs,
      // Many objects of a large young generation may survive at once. They may exceed the limit by
      // so much that V8 ends the process, not the thread (Node 24).
      resourceLimits: { maxOldGenerationSizeMb: limits.threadMemoryMaxMiB, maxYoungGenerationSizeMb: youngMaxMiB },
      recordTiming: false,
    });
    // A thread may be lost after its task was answered, because V8 detects exhausted memory only at
    // the next garbage collection.
    this.#pool.on('error', (error: unknown) => log.warn('heavy.thread-failed', { error }));
  }

  of(owner: string): HeavyWork {
    return {
      run: async <Task extends HeavyTask>(task: Task): Promise<HeavyResult<Task>> => {
        if (weightOf(task) <= this.#limits.lightBytesMax) return mustParse(performTask(task));
        const crossed = await this.#wait(owner, task);
        if (typeof crossed === 'object' && 'refusal' in crossed) throw new Refused(crossed.refusal);
        return crossed as HeavyResult<Task>;
      },
    };
  }

  /** Makes all tasks that wait or run fail. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #wait(owner: string, task: HeavyTask): Promise<Crossing> {
    return new Promise((settle) => {
      if (!this.#queue.add(owner, { task, settle }, bytesOf(task))) throw new Refused(tooBusy);
      this.#next();
    });
  }

  #next(): void {
    if (this.#isBusy) return;
    const waiting = this.#queue.take();
    if (waiting === undefined) return;
    this.#isBusy = true;
    const running = this.#run(waiting.task);
    const goOn = (): void => {
      this.#isBusy = false;
      this.#next();
    };
    running.then(goOn, goOn);
    waiting.settle(running);
  }

  async #run(task: HeavyTask): Promise<Crossing> {
    const overdue = new AbortController();
    const cancel = this.#clock.after(this.#limits.taskTimeMaxMs, () => overdue.abort());
    try {
      const crossing = owned(task);
      return await this.#pool.run(crossing, { signal: overdue.signal, transferList: buffersOf(crossing) });
    } catch (error) {
      if (overdue.signal.aborted) throw new Refused(tooMuch(`takes more than ${this.#limits.taskTimeMaxMs / 1000} s`));
      if (hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')) throw new Refused(tooMuch('takes too much memory'));
      throw new CacheError('heavy work failed', { cause: error });
    } finally {
      cancel();
    }
  }
}

/**
 * Copies the bytes of a task for the transfer. The originals may belong to an object that is kept,
 * or to a larger buffer, which would be transferred as a whole.
 */
function owned(task: HeavyTask): HeavyTask {
  const whole = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
  switch (task.kind) {
    case 'patch':
      return { ...task, target: whole(task.target), patch: whole(task.patch) };
    case 'compare':
      return { ...task, left: whole(task.left), right: whole(task.right) };
    default:
      return { ...task, text: whole(task.text) };
  }
}

function buffersOf(task: HeavyTask): ArrayBuffer[] {
  return Object.values(task).flatMap((value) => (value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : []));
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

const tooBusy = tooManyRequests('too many large documents are being worked on');

function tooMuch(why: string): Refusal {
  return { reason: 'RequestEntityTooLarge', message: `the work on this document ${why}` };
}

/**
 * A hostile document of 32 KiB takes some 10 ms in the serving thread, usual patches and updates a
 * tenth of that. Documents with more than half a million values are refused, so the thread's memory
 * limit is only the last resort.
 */
export const heavyLimits: HeavyLimits = {
  lightBytesMax: 32 * 1024,
  itemsMax: 32,
  bytesMax: 64 * 1024 * 1024,
  taskTimeMaxMs: 10_000,
  threadMemoryMaxMiB: 1536,
  idleMs: 30_000,
};
