/**
 * Prints where a test has failed, or what it has thrown, as soon as it has: AVA prints that when all is over, a quarter of an hour later in some lanes. What an assertion
 * has compared is known to AVA alone, and printed then.
 */
import { writeSync } from 'node:fs';
import type { ImplementationFn } from 'ava';

const stderr = 2;

export function reasonAtOnce(test: ImplementationFn<unknown[]>): ImplementationFn<unknown[]> {
  return async (t, ...args) => {
    try {
      return await test(t, ...args);
    } catch (error) {
      // Written at once: the stream of a worker waits for its main thread.
      writeSync(stderr, `\n✘ ${t.title}\n${error instanceof Error ? error.stack : String(error)}\n`);
      throw error;
    }
  };
}
