/**
 * What a slice holds, as SHA-256s over its objects in the order of their keys, one for each bucket: nobody can choose objects so that two different slices
 * have the same (unlike digest.ts, whose sum can follow every change but can be matched). Two caches with the same ones hold the same objects, byte
 * for byte but for their resourceVersions.
 *
 *   256 buckets ──┬── as many as the slice is worth: about 32 objects each       a coarse digest is the SHA-256 of the fine ones it stands for,
 *                 └── at least one                                               so who has them can compare with any number of them
 */
import { createHash, type Hash } from 'node:crypto';
import { bucketCount, bucketOf, bucketSet, type BucketSet } from './buckets.js';
import type { StoredObject } from './object.js';

const objectsPerDigest = 32;
const digestBytes = 32;

export class Summary {
  readonly #hashes: (Hash | undefined)[] = Array.from({ length: bucketCount });
  #objects = 0;
  #fine: readonly Buffer[] | undefined;

  /** Adds objects whose keys come after all that were added before, in order. */
  add(objects: readonly StoredObject[]): void {
    for (const { key, body } of objects) {
      // Each part with its length, so that no two lists of objects are the same bytes.
      const parts = [key.cluster, key.namespace, key.name, body.version, ''].map((part) => `${part.length}:${part}`);
      const hash = (this.#hashes[bucketOf(key)] ??= createHash('sha256'));
      hash.update(`${parts.join('')}${body.bytes.length}:`).update(body.bytes);
    }
    this.#objects += objects.length;
  }

  /** Its digests, one behind the other. Nothing may be added any more. */
  digests(): Uint8Array {
    let count = 1;
    while (count < bucketCount && count * objectsPerDigest < this.#objects) count *= 2;
    return Buffer.concat(this.#folded(count));
  }

  /** Where the other end, which has these digests, holds something else. Undefined: they are no digests of a slice. */
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
