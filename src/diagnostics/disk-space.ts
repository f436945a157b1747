/**
 * The free space on the disk of a folder, read on demand. A disk that does not answer, such as a
 * network disk, delays a caller for at most `answerMsMax`. Only one request is under way at a time,
 * because each request occupies a thread of the pool that file reads need.
 */
import type { StatsFs } from 'node:fs';
import type { Clock } from '../domain/ports.js';

/** `availableBytes`: the free space for a user without privileges. */
export type DiskCapacity = Readonly<{ availableBytes: number; sizeBytes: number }>;

/** `ask`: statfs of the folder. */
export type DiskSpaceParts = Readonly<{ clock: Clock; ask: () => Promise<Pick<StatsFs, 'bavail' | 'blocks' | 'bsize'>> }>;

const answerMsMax = 1_000;

export class DiskSpace {
  readonly #parts: DiskSpaceParts;
  #asked: Promise<DiskCapacity | undefined> | undefined;

  constructor(parts: DiskSpaceParts) {
    this.#parts = parts;
  }

  /** Undefined if the disk does not answer in time, or with an error. */
  async capacity(): Promise<DiskCapacity | undefined> {
    this.#asked ??= this.#ask().finally(() => (this.#asked = undefined));
    const asked = this.#asked;
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(answerMsMax, () => resolve(undefined));
      void asked.then((capacity) => {
        cancel();
        resolve(capacity);
      });
    });
  }

  async #ask(): Promise<DiskCapacity | undefined> {
    try {
      const { bavail, blocks, bsize } = await this.#parts.ask();
      return { availableBytes: bavail * bsize, sizeBytes: blocks * bsize };
    } catch {
      return undefined;
    }
  }
}
