/**
 * The digest of a slice: the sum of a hash of each object's key and content, so order does not
 * matter. Two caches with the same digest hold the same objects, equal in all bytes but their
 * resourceVersions. A digest detects bugs and does not defend against attacks: whoever chooses
 * bodies can make two sums equal.
 */
import { createHash } from 'node:crypto';
import type { Key } from '../key.js';
import type { Body } from '../object.js';

/** Two halves of 48 bits, so that sums stay exact in a double. */
export type Digest = Readonly<{ high: number; low: number }>;

export const emptyDigest: Digest = { high: 0, low: 0 };

const halfDigits = 12;
const modulus = 16 ** halfDigits;
const separator = '\u0000';

export function digestOf(
  { cluster, namespace, name }: Pick<Key, 'cluster' | 'namespace' | 'name'>,
  { bytes, version }: Pick<Body, 'bytes' | 'version'>,
): Digest {
  const hash = createHash('sha256').update([cluster, namespace, name, version, ''].join(separator)).update(bytes).digest('hex');
  return { high: Number.parseInt(hash.slice(0, halfDigits), 16), low: Number.parseInt(hash.slice(halfDigits, 2 * halfDigits), 16) };
}

export function addDigest(sum: Digest, { high, low }: Digest): Digest {
  return { high: (sum.high + high) % modulus, low: (sum.low + low) % modulus };
}

export function subtractDigest(sum: Digest, { high, low }: Digest): Digest {
  return { high: (sum.high + modulus - high) % modulus, low: (sum.low + modulus - low) % modulus };
}

/** Returns 24 hexadecimal digits. */
export function formatDigest({ high, low }: Digest): string {
  return [high, low].map((half) => half.toString(16).padStart(halfDigits, '0')).join('');
}
