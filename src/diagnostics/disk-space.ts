/**
 * How much room the disk of a folder has, asked for when somebody wants to know. A disk that does not answer, as one behind a network may, delays nobody for more than
 * `answerMsMax`, and is asked once at a time: each question holds a thread that reads of files need.
 */
import type { StatsFs } from 'node:fs';
import type { Clock } from '../domain/ports.js';

/** `availableBytes`: what a user without privileges may take of it. */
export type DiskRoom = Readonly<{ availableBytes: number; sizeBytes: number }>;

/** `ask`: statfs of the folder. */
export type DiskSpaceParts = Readonly<{ clock: Clock; ask: () => Promise<Pick<StatsFs, 'bavail' | 'blocks' | 'bsize'>> }>;

const answerMsMax = 1_000;

export class DiskSpace {
  readonly #parts: DiskSpaceParts;
  #asked: Promise<DiskRoom | undefined> | undefined;

  constructor(parts: DiskSpaceParts) {
    this.#parts = parts;
  }

  /** Undefined where that is not known now. */
  async room(): Promise<DiskRoom | undefined> {
    this.#asked ??= this.#ask().finally(() => (this.#asked = undefined));
    const asked = this.#asked;
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(answerMsMax, () => resolve(undefined));
      void asked.then((room) => {
        cancel();
        resolve(room);
      });
    });
  }

  async #ask(): Promise<DiskRoom | undefined> {
    try {
      const { bavail, blocks, bsize } = await this.#parts.ask();
      return { availableBytes: bavail * bsize, sizeBytes: blocks * bsize };
    } catch {
      return undefined;
    }
  }
}
