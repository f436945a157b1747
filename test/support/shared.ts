/**
 * What the tests of a file share, made when the first of them asks. Files of one worker are loaded together: what a file starts as it is loaded waits for its turn
 * beside the tests of all files before it, until its requests run out of time.
 */
import type { ExecutionContext } from 'ava';
import { test } from './test.js';

/** `end` is called after the last test, if anything was made. */
export function shared<Made>(make: () => Promise<Made>, end: (made: Made, t: ExecutionContext) => unknown): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  test.after.always(async (t) => {
    if (made !== undefined) await end(await made, t);
  });
  return () => (made ??= make());
}
