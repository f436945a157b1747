/** Objects as etcd has them, read to be kept. */
import type { CanonicalPath } from '../../domain/cluster.js';
import { digestOf, type Digest } from '../../domain/digest.js';
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
 * Without its body, of which `bytes` is the length. `path`: the canonical path that it names. `kept`: what it has of the names that are kept. `writtenAt`: where it was
 * written again because a namesake had gone, when somebody has written it.
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
  /** The last that was met: the next is mostly of the same type, shard and cluster. */
  #last: Key | undefined;
  readonly #scratch = scratchBuffer();

  constructor({ prefix, keptNames }: Readonly<{ prefix: string; keptNames: KeptNames }>) {
    this.#prefix = prefix;
    this.#keptNames = keptNames;
  }

  /** Undefined when the text is no object's key. */
  keyOf(text: string): Key | undefined {
    const key = parseObjectKey(this.#prefix, text);
    if (key === undefined) return undefined;
    this.#last = compactKey(key, this.#last);
    return this.#last;
  }

  /** Undefined where the value is no object of the key. The body of one that is not to be kept is overwritten by the next. */
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
