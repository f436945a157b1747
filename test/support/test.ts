/**
 * AVA's `test`, with the tests of each worker one after the other. AVA's own option for that allows
 * only one worker. Tests of one file that start together, with a server each, would slow each other
 * down until they time out.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava, { type ImplementationFn, type TestFn } from 'ava';
import { findProjectRoot } from '../house/sources.js';
import { overHttpOf } from './http-of-file.js';
import { reasonAtOnce } from './reason-at-once.js';
import { timed } from './time-of-file.js';

/** The file that AVA runs in this worker: one of tests, or an entry that imports many. */
const worker = relative(`${findProjectRoot()}/build`, fileURLToPath(ava.meta.file));
/** The file that has each title, of all files in this worker (`entry-files.ts`). */
const fileOf = new Map<string, string | undefined>();

/**
 * Combines AVA's serial tests with those of its members that are the same for all tests;
 * `test.serial` is this `test`.
 */
export const test: TestFn = new Proxy(ava.serial, {
  get: (serial, name) => (name === 'serial' ? test : (Reflect.get(name in serial ? serial : ava, name) as unknown)),
  apply: (serial, self, [title, body, ...rest]: [string, ImplementationFn<unknown[]>, ...unknown[]]) =>
    Reflect.apply(serial, self, [
      distinct(title),
      timed(overHttpOf(process.env['TEST_FILE'] ?? worker, reasonAtOnce(body))),
      ...rest,
    ]) as unknown,
}) as TestFn;

/** AVA ends a worker that has a title twice. Two files may have the same, so the second is named. */
function distinct(title: string): string {
  const file = process.env['TEST_FILE'];
  if (fileOf.has(title) && fileOf.get(title) !== file) return `${title} (${file})`;
  fileOf.set(title, file);
  return title;
}
