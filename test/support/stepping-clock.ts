/**
 * Loaded into a server's process before everything else. It shifts the wall clock by the number of
 * milliseconds in the file STEPPED_CLOCK_FILE, which it reads twenty times a second. It leaves
 * `performance` alone, as the kernel leaves its monotonic clock alone.
 */
import { readFileSync } from 'node:fs';

const file = process.env['STEPPED_CLOCK_FILE'];
const RealDate = Date;
let stepMs = 0;

function look(): void {
  try {
    stepMs = Number(readFileSync(file ?? '', 'utf8')) || 0;
  } catch {
    stepMs = 0;
  }
}

if (file !== undefined) {
  look();
  setInterval(look, 50).unref();
  class SteppedDate extends RealDate {
    constructor(...given: readonly unknown[]) {
      if (given.length === 0) super(RealDate.now() + stepMs);
      else super(...(given as [number]));
    }

    static override now(): number {
      return RealDate.now() + stepMs;
    }
  }
  globalThis.Date = SteppedDate as DateConstructor;
}
