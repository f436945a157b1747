/** Loads the bodies of indexed objects from memory, or from etcd at a given revision. */
import { expired, Refused } from '../../domain/errors.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { IndexedObject } from './object-reader.js';
import { formatObjectKey } from './object-keys.js';
import type { RecentBodies } from './recent-bodies.js';
import type { KeyValue } from './rpc.js';
import { readValue } from './stored-values.js';

export type BodyReaderParts = Readonly<{ client: EtcdClient; prefix: string; bodies: RecentBodies }>;

const rangeKeysMax = 500;
/**
 * A range request may fetch this many keys per missing key. Otherwise each missing key has its own
 * request.
 */
const rangeKeysPerMissing = 4;
const asksMax = 16;
/** In a range request, revision 0 is the newest. */
const newest: Revision = 0;

export class BodyReader {
  readonly #parts: BodyReaderParts;

  constructor(parts: BodyReaderParts) {
    this.#parts = parts;
  }

  /**
   * Returns the objects in the given order, which must be the order of their keys. `at`: a revision
   * at which all of them exist. Rejects with Refused: 410 if etcd has compacted `at` and one of the
   * objects has changed since; 503 if etcd does not answer.
   */
  async read(objects: readonly IndexedObject[], at: Revision): Promise<readonly StoredObject[]> {
    // Bodies in memory are taken before the wait for etcd, because they may be evicted during it.
    const here = objects.map(({ key, revision }) => this.#parts.bodies.get(key, revision));
    const missing = objects.filter((_, i) => here[i] === undefined);
    const fetched = missing.length === 0 ? new Map<string, StoredObject>() : await this.#fetched(missing, at);
    return objects.map(({ key }, i) => {
      const found = here[i] ?? fetched.get(this.#textOf(key));
      if (found === undefined) throw new Error(`etcd does not have ${this.#textOf(key)} at revision ${at}`);
      return found;
    });
  }

  async #fetched(missing: readonly IndexedObject[], at: Revision): Promise<ReadonlyMap<string, StoredObject>> {
    const wanted = new Map(missing.map((object) => [this.#textOf(object.key), object]));
    const found = new Map<string, StoredObject>();
    const take = ({ key, value, revision }: KeyValue): void => {
      const text = Buffer.from(key).toString();
      const object = wanted.get(text);
      if (object?.revision !== revision) return;
      wanted.delete(text);
      const stored = { key: object.key, revision, resourceVersion: String(revision), body: readValue(object.key, value).body };
      found.set(text, stored);
      this.#parts.bodies.add(stored);
    };
    if (await this.#ask(wanted, at, take)) return found;
    // Another program has compacted `at`. Objects unchanged since are still at the newest revision.
    await this.#ask(wanted, newest, take);
    if (wanted.size > 0) throw new Refused(expired(`too old resource version: ${at}`));
    return found;
  }

  /** Returns false if etcd has compacted the revision. */
  async #ask(wanted: ReadonlyMap<string, IndexedObject>, at: Revision, take: (kv: KeyValue) => void): Promise<boolean> {
    try {
      await this.#range([...wanted.keys()], at, take);
      const left = [...wanted.keys()];
      for (let from = 0; from < left.length; from += asksMax)
        await Promise.all(
          left.slice(from, from + asksMax).map(async (text) => {
            const { kvs } = await this.#parts.client.range({ key: Buffer.from(text), revision: at });
            for (const kv of kvs) take(kv);
          }),
        );
      return true;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      if (error.kind === 'compacted') return false;
      throw new Refused({ reason: 'ServiceUnavailable', message: error.message });
    }
  }

  /** Fetches one range over all keys, if it holds few others. */
  async #range(texts: readonly string[], at: Revision, take: (kv: KeyValue) => void): Promise<void> {
    const [first, last] = [texts[0], texts.at(-1)];
    if (first === undefined || last === undefined || texts.length < rangeKeysPerMissing) return;
    const limit = Math.min(rangeKeysMax, texts.length * rangeKeysPerMissing);
    const { kvs } = await this.#parts.client.range({ key: Buffer.from(first), rangeEnd: Buffer.from(`${last}\0`), limit, revision: at });
    for (const kv of kvs) take(kv);
  }

  #textOf(key: IndexedObject['key']): string {
    return formatObjectKey(this.#parts.prefix, key);
  }
}
