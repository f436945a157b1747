/**
 * Something that the tests of a file share, made by the first test that needs it. AVA loads all
 * files of a worker together. What a file starts while it is loaded would wait while all earlier
 * files are tested, until its requests time out.
 */
import type { ExecutionContext } from 'ava';
import { test } from './test.js';

/** Calls `end` after the last test, if anything was made. */
export function shared<Made>(make: () => Promise<Made>, end: (made: Made, t: ExecutionContext) => unknown): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  test.after.always(async (t) => {
    if (made !== undefined) await end(await made, t);
  });
  return () => (made ??= make());
}
