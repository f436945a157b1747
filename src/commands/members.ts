/**
 * Reads the members of a cache's answer by type. Each function throws CacheError for another type.
 */
import { CacheError } from '../domain/errors.js';
import { isObject, type Members } from '../domain/base/members.js';

export function recordOf(value: unknown): Members {
  if (isObject(value)) return value;
  throw unread('an object');
}

export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unread('a list');
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw unread('a string');
}

export function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  throw unread('a number');
}

export function truthOf(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw unread('true or false');
}

export function orNull<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null ? null : read(value);
}

/** Reads a member that older caches do not report. */
export function orUnreported<T, Unreported>(value: unknown, read: (value: unknown) => T, unreported: Unreported): T | Unreported {
  return value === undefined ? unreported : read(value);
}

export function unread(wanted: string): CacheError {
  return new CacheError(`the answer is not the status of a Strata cache: ${wanted} is missing`);
}
