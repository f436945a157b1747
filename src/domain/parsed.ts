/**
 * What a parser of untrusted input returns: the value, or why it is refused. A refusal is a value (errors.ts), so it
 * cannot be forgotten; only `attempt` knows that a parser may throw one from its depths.
 */
import { Refused } from './errors.js';
import type { Refusal } from './errors.js';

export type Parsed<T> = Readonly<{ kind: 'parsed'; value: T }> | Readonly<{ kind: 'refused'; refusal: Refusal }>;

export function parsed<T>(value: T): Parsed<T> {
  return { kind: 'parsed', value };
}

export function refused(refusal: Refusal): Parsed<never> {
  return { kind: 'refused', refusal };
}

/** Runs a parser that throws Refused where it stands; anything else it throws is a bug and passes. */
export function attempt<T>(parse: () => T): Parsed<T> {
  try {
    return parsed(parse());
  } catch (error) {
    if (error instanceof Refused) return refused(error.refusal);
    throw error;
  }
}

/** The value of a parse inside another one, or of input that is known to be right. */
export function mustParse<T>(result: Parsed<T>): T {
  if (result.kind === 'refused') throw new Refused(result.refusal);
  return result.value;
}
