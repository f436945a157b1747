/**
 * How much `npm test` does of what takes long because it is much. It runs an eighth of the tests of great numbers and a quarter of the rows of long tables, others on each
 * commit, and a quarter of the rounds of those whose rounds are alike. `.ci/run` does all of it (TEST_SIZES=all), and so does whoever names files.
 */
import { createHash } from 'node:crypto';
import ava, { type TestFn } from 'ava';
import { test } from './test.js';

/** ava.config.js sets it. */
const isSome = process.env['TEST_SIZES'] === 'some';

/** A test of great numbers. One that this commit leaves out is skipped: AVA shows it as that. */
export const largeTest = new Proxy(test, {
  apply: (_test, self, [title, ...rest]: [string, ...unknown[]]) =>
    Reflect.apply(isDue(title) ? test : ava.serial.skip, self, [title, ...rest]) as unknown,
}) as TestFn;

/** How many rounds of `all` a test makes. Each has its own chance, so that many commits make all of them. */
export function rounds(all: number): number {
  return isSome ? Math.ceil(all / 4) : all;
}

/** Of cases that one test tries in turn: a quarter, one at least. Four commits in turn would try all; which one is next is left to its hash. */
export function someOf<Case>(cases: readonly Case[]): readonly Case[] {
  const parts = Math.min(4, cases.length);
  return isSome ? cases.filter((_, i) => i % parts === ofCommit('rows') % parts) : cases;
}

function isDue(title: string): boolean {
  return !isSome || ofCommit(title) % 8 === 0;
}

function ofCommit(what: string): number {
  return createHash('sha256').update(`${process.env['TEST_COMMIT']} ${what}`).digest()[0]!;
}
