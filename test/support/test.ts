/**
 * AVA's `test`, one after the other in each worker. AVA's own option for that allows one worker alone; and tests of one file that start together, with a server
 * each, wait for one another until their time is over.
 */
import ava, { type TestFn } from 'ava';
import { timed } from './time-of-file.js';

/** What AVA has of serial tests, and what is the same for all of them. */
export const test = new Proxy(ava.serial, {
  get: (serial, name) => Reflect.get(name in serial ? serial : ava, name) as unknown,
  apply: (serial, self, [title, body, ...rest]: [string, Parameters<typeof timed>[0], ...unknown[]]) =>
    Reflect.apply(serial, self, [title, timed(body), ...rest]) as unknown,
}) as TestFn;
