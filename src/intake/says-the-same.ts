import { Buffer } from 'node:buffer';
import { Refused } from '../domain/errors.js';
import type { Body } from '../domain/object.js';
import type { HeavyWork } from '../domain/ports.js';
import { stringsDiffer } from '../json/same-content.js';

/**
 * The serving thread scans texts up to this total in about 2 ms. Only the thread for heavy work
 * compares longer ones.
 */
const comparedHereBytesMax = 1024 * 1024;

/**
 * kcp repeats nearly every PUT byte for byte. A comparison that takes too long counts as different,
 * which costs an event that changes nothing.
 */
export async function saysTheSame(next: Body, stored: Body, heavy: HeavyWork): Promise<boolean> {
  if (Buffer.compare(next.bytes, stored.bytes) === 0) return true;
  if (next.bytes.length + stored.bytes.length <= comparedHereBytesMax && stringsDiffer(next.bytes, stored.bytes)) return false;
  try {
    return await heavy.run({ kind: 'compare', left: next.bytes, right: stored.bytes });
  } catch (error) {
    if (error instanceof Refused && error.refusal.reason === 'RequestEntityTooLarge') return false;
    throw error;
  }
}
