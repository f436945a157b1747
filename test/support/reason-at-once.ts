/**
 * Prints where a test failed, or what it threw, as soon as that happens. AVA prints it only when
 * all tests are over, which takes a quarter of an hour in some lanes. Only AVA knows the values
 * that an assertion compared; it prints them at the end.
 */
import { writeSync } from 'node:fs';
import type { ImplementationFn } from 'ava';
import { spokenHttp } from './http-of-file.js';

const stderr = 2;

export function reasonAtOnce(test: ImplementationFn<unknown[]>): ImplementationFn<unknown[]> {
  return async (t, ...args) => {
    try {
      return await test(t, ...args);
    } catch (error) {
      // Written synchronously: the stream of a worker waits for its main thread.
      writeSync(stderr, `\n✘ ${t.title} (TEST_HTTP=${spokenHttp()})\n${error instanceof Error ? error.stack : String(error)}\n`);
      throw error;
    }
  };
}
