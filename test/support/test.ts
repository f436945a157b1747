/**
 * AVA's `test`, with the tests of each worker one after the other. AVA's own option for that allows
 * only one worker. Tests of one file that start together, with a server each, would slow each other
 * down until they time out.
 */
import ava, { type ImplementationFn, type TestFn } from 'ava';
import { reasonAtOnce } from './reason-at-once.js';
import { timed } from './time-of-file.js';

/**
 * Combines AVA's serial tests with those of its members that are the same for all tests;
 * `test.serial` is this `test`.
 */
export const test: TestFn = new Proxy(ava.serial, {
  get: (serial, name) => (name === 'serial' ? test : (Reflect.get(name in serial ? serial : ava, name) as unknown)),
  apply: (serial, self, [title, body, ...rest]: [string, ImplementationFn<unknown[]>, ...unknown[]]) =>
    Reflect.apply(serial, self, [title, timed(reasonAtOnce(body)), ...rest]) as unknown,
}) as TestFn;
