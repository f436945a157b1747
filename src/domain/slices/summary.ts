/**
 * Summarises a slice as SHA-256 digests of its objects in key order, one for each bucket. Two
 * caches with equal digests hold the same objects, equal in all bytes but their resourceVersions.
 * Unlike the sum in digest.ts, a digest here cannot be forged, and a change cannot update it.
 *
 *  256 buckets ─▶ at least one digest, and about one for 32 objects
 *
 * The digest of several buckets is the SHA-256 of the digests of these buckets. So a cache that has
 * one digest for each bucket can compare with a summary of any length.
 */
import { createHash, type Hash } from 'node:crypto';
import { bucketCount, bucketOf, bucketSet, type BucketSet } from './buckets.js';
import type { StoredObject } from '../object.js';

const objectsPerDigest = 32;
const digestBytes = 32;

export class Summary {
  readonly #hashes: (Hash | undefined)[] = Array.from({ length: bucketCount });
  #objects = 0;
  #fine: readonly Buffer[] | undefined;

  /** Adds objects in key order, after all that were added before. */
  add(objects: readonly StoredObject[]): void {
    for (const { key, body } of objects) {
      // Prefixes each part with its length, so that different lists of objects never give the same
      // bytes.
      const parts = [key.cluster, key.namespace, key.name, body.version, ''].map((part) => `${part.length}:${part}`);
      const hash = (this.#hashes[bucketOf(key)] ??= createHash('sha256'));
      hash.update(`${parts.join('')}${body.bytes.length}:`).update(body.bytes);
    }
    this.#objects += objects.length;
  }

  /** The concatenated digests. Nothing may be added after this. */
  digests(): Uint8Array {
    let count = 1;
    while (count < bucketCount && count * objectsPerDigest < this.#objects) count *= 2;
    return Buffer.concat(this.#folded(count));
  }

  /**
   * The buckets in which this slice differs from the other end's, given the other end's digests.
   * Undefined if the bytes are no valid digests.
   */
  differing(digests: Uint8Array): BucketSet | undefined {
    const count = digests.length / digestBytes;
    if (!Number.isInteger(Math.log2(count)) || count < 1 || count > bucketCount) return undefined;
    const each = bucketCount / count;
    const other = Buffer.from(digests.buffer, digests.byteOffset, digests.length);
    const differing = this.#folded(count).flatMap((own, i) => {
      const isSame = own.equals(other.subarray(i * digestBytes, (i + 1) * digestBytes));
      return isSame ? [] : Array.from({ length: each }, (_, j) => i * each + j);
    });
    return bucketSet(differing);
  }

  #folded(count: number): readonly Buffer[] {
    const empty = createHash('sha256').digest();
    this.#fine ??= this.#hashes.map((hash) => hash?.digest() ?? empty);
    const [fine, each] = [this.#fine, bucketCount / count];
    if (each === 1) return fine;
    return Array.from({ length: count }, (_, i) => {
      const hash = createHash('sha256');
      for (const digest of fine.slice(i * each, (i + 1) * each)) hash.update(digest);
      return hash.digest();
    });
  }
}
