/**
 * AVA's `test`, one after the other in each worker. AVA's own option for that allows one worker alone; and tests of one file that start together, with a server
 * each, wait for one another until their time is over.
 */
import ava, { type ImplementationFn, type TestFn } from 'ava';
import { reasonAtOnce } from './reason-at-once.js';
import { timed } from './time-of-file.js';

/** What AVA has of serial tests, and what is the same for all of them; `test.serial` is the same. */
export const test: TestFn = new Proxy(ava.serial, {
  get: (serial, name) => (name === 'serial' ? test : (Reflect.get(name in serial ? serial : ava, name) as unknown)),
  apply: (serial, self, [title, body, ...rest]: [string, ImplementationFn<unknown[]>, ...unknown[]]) =>
    Reflect.apply(serial, self, [title, timed(reasonAtOnce(body)), ...rest]) as unknown,
}) as TestFn;
