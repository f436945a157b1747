/**
 * The result of a parser of untrusted input: the value, or a refusal. The type makes every caller
 * check for a refusal. Only `attempt` handles parsers that throw a refusal.
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

/** Runs a parser that may throw Refused; any other error is a bug and propagates. */
export function attempt<T>(parse: () => T): Parsed<T> {
  try {
    return parsed(parse());
  } catch (error) {
    if (error instanceof Refused) return refused(error.refusal);
    throw error;
  }
}

/** Unwraps the result of a nested parse, or of input that is known to be valid. Throws Refused. */
export function mustParse<T>(result: Parsed<T>): T {
  if (result.kind === 'refused') throw new Refused(result.refusal);
  return result.value;
}
