/**
 * Moves the wall clock of a running server process: libfaketime reads an offset from a file.
 * Monotonic time goes on, as it does when an administrator or NTP steps the clock of a machine.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { SteppedClock } from './model-commands.js';

const library = ['/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1', '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1'].find(
  (path) => existsSync(path),
);

/** False where libfaketime is not installed (Debian: `apt-get install faketime`). */
export const canFakeClock = library !== undefined;

/**
 * The clock begins ahead of real time and never falls behind it: clients' certificates begin then.
 */
const beginMs = 2 * 3_600_000;
const offsetMsMax = 4 * 3_600_000;

export class FakedClock implements SteppedClock {
  readonly #file: string;
  #offsetMs = beginMs;

  constructor(file: string) {
    this.#file = file;
  }

  /** Additional variables for the server's environment. */
  get environment(): Readonly<Record<string, string>> {
    if (library === undefined) return {};
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    };
  }

  async step(byMs: number): Promise<void> {
    this.#offsetMs = Math.min(offsetMsMax, Math.max(0, this.#offsetMs + byMs));
    const seconds = this.#offsetMs / 1000;
    await writeFile(this.#file, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  }
}
