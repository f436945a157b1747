/**
 * What a slice holds, as one SHA-256 over its objects in the order of their keys: nobody can choose objects so that two different slices have
 * the same (unlike digest.ts, whose sum follows every change but can be matched). Two caches that have the same one hold the same objects, byte
 * for byte but for their resourceVersions.
 */
import { createHash } from 'node:crypto';
import type { StoredObject } from './object.js';

export class Summary {
  readonly #hash = createHash('sha256');
  #objects = 0;

  /** Objects behind all that were added before, in the order of their keys. */
  add(objects: readonly StoredObject[]): void {
    for (const { key, body } of objects) {
      // Each part with its length, so that no two lists of objects are the same bytes.
      const parts = [key.cluster, key.namespace, key.name, body.version, ''].map((part) => `${part.length}:${part}`);
      this.#hash.update(`${parts.join('')}${body.bytes.length}:`).update(body.bytes);
    }
    this.#objects += objects.length;
  }

  format(): string {
    return `${this.#objects}:${this.#hash.digest('hex')}`;
  }
}
