/**
 * How much of its large work `npm test` does: an eighth of the tests of great numbers and a quarter
 * of the rows of long tables. Of a test whose rounds are alike it runs a quarter of the rounds.
 * Each commit gets other tests and rows. `.ci/run` does all of it (TEST_SIZES=all), and so does AVA
 * for named files.
 */
import { createHash } from 'node:crypto';
import ava, { type TestFn } from 'ava';
import { test } from './test.js';

/** ava.config.js sets it. */
const isSome = process.env['TEST_SIZES'] === 'some';

/** A test of great numbers. If this commit leaves it out, AVA reports it as skipped. */
export const largeTest = new Proxy(test, {
  apply: (_test, self, [title, ...rest]: [string, ...unknown[]]) =>
    Reflect.apply(isDue(title) ? test : ava.serial.skip, self, [title, ...rest]) as unknown,
}) as TestFn;

/**
 * How many of `all` rounds a test makes. Each round is random, so many commits together try what
 * all rounds would.
 */
export function rounds(all: number): number {
  return isSome ? Math.ceil(all / 4) : all;
}

/**
 * A quarter of the cases of one test, at least one. The hash of the commit chooses which quarter.
 */
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
