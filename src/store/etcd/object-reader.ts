/** Parses objects from etcd into the form that the index keeps. */
import type { CanonicalPath } from '../../domain/cluster.js';
import { digestOf, type Digest } from '../../domain/slices/digest.js';
import { namesOfType, type KeptNames } from '../../domain/kept-names.js';
import { compactKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { keptIn, type Kept } from '../../json/kept-members.js';
import { ownBuffer, scratchBuffer } from '../../json/text-edits.js';
import { parseObjectKey } from './object-keys.js';
import type { KeyValue } from './rpc.js';
import { readValue, Unreadable } from './stored-values.js';

/**
 * An object without its body. `bytes`: the length of the body. `path`: the canonical path that the
 * object names. `kept`: the kept names that were set on this copy (KEPT-2). `writtenAt`: the
 * revision of the last write that was not the store's own; present if the store wrote the object
 * again.
 */
export type IndexedObject = Readonly<{
  key: Key;
  revision: Revision;
  bytes: number;
  digest: Digest;
  path: CanonicalPath | undefined;
  kept?: Kept | undefined;
  writtenAt?: Revision;
}>;

export type ReadObject = Readonly<{ indexed: IndexedObject; stored: StoredObject }>;

export class ObjectReader {
  readonly #prefix: string;
  readonly #keptNames: KeptNames;
  /**
   * The last key. The next key mostly has the same type, shard and logical cluster, and reuses
   * their texts.
   */
  #last: Key | undefined;
  readonly #scratch = scratchBuffer();

  constructor({ prefix, keptNames }: Readonly<{ prefix: string; keptNames: KeptNames }>) {
    this.#prefix = prefix;
    this.#keptNames = keptNames;
  }

  /** Undefined if the text is not the key of an object. */
  keyOf(text: string): Key | undefined {
    const key = parseObjectKey(this.#prefix, text);
    if (key === undefined) return undefined;
    this.#last = compactKey(key, this.#last);
    return this.#last;
  }

  /**
   * Undefined if the value is not an object of the key. Without `isBodyKept`, the next read
   * overwrites the body.
   */
  read(key: Key, { value, revision }: KeyValue, isBodyKept = true): ReadObject | undefined {
    try {
      const { body, path } = readValue(key, value, isBodyKept ? ownBuffer : this.#scratch);
      const names = namesOfType(this.#keptNames, key.resource);
      const kept = names && keptIn(body, names);
      return {
        indexed: { key, revision, bytes: body.bytes.length, digest: digestOf(key, body), path, ...(kept && { kept }) },
        stored: { key, revision, resourceVersion: String(revision), body },
      };
    } catch (error) {
      if (error instanceof Unreadable) return undefined;
      throw error;
    }
  }
}
