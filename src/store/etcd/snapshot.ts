/**
 * A scope as it was at a revision, page by page. The snapshot reads the present objects; for a key
 * that has changed since, it takes the earlier object from history. It stores nothing, because
 * history has every changed key, in the same order.
 *
 *   at 20     objects now         a 12    b 31    d 18      b changed at 31, c was deleted at 27:
 *             keys of history     b (14)  c (9)             a 12, b 14, c 9, d 18
 */
import { setImmediate as turn } from 'node:timers/promises';
import { expired, Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { Snapshot, SnapshotPage } from '../../domain/store-port.js';
import type { SnapshotLimits } from '../store-options.js';
import type { BodyReader } from './body-reader.js';
import { firstChangeAbove, type ChangedKey, type HistoryWindow } from './history-window.js';
import type { KeyIndex } from './key-index.js';
import type { IndexedObject } from './object-reader.js';

export type EtcdSnapshotParts = Readonly<{
  objects: KeyIndex<IndexedObject>;
  history: Pick<HistoryWindow, 'changedKeys'>;
  reader: Pick<BodyReader, 'read'>;
  /** Throws Refused(Expired) once history no longer covers the revision. */
  assertCovered: () => void;
  release: () => void;
}>;

/** Keys that one snapshot examines in one turn of the event loop: about 1 ms. */
const keysAtOnce = 1_000;

type Found = IndexedObject | StoredObject;

export class EtcdSnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #parts: EtcdSnapshotParts;
  readonly #limits: SnapshotLimits;

  constructor(scope: Scope, revision: Revision, parts: EtcdSnapshotParts, limits: SnapshotLimits) {
    this.#scope = scope;
    this.revision = revision;
    this.#parts = parts;
    this.#limits = limits;
  }

  /** A page may be empty without being the last. */
  async page(after: Key | undefined): Promise<SnapshotPage> {
    this.#parts.assertCovered();
    const { found, next } = this.#scan(after);
    const objects = await this.#withBodies(found);
    // If all bodies were in memory, other work of the event loop has not had a turn.
    if (next !== undefined) await turn();
    this.#parts.assertCovered();
    return { objects, next };
  }

  close(): void {
    this.#parts.release();
  }

  /** The objects behind `after` at the revision, and the last key examined. */
  #scan(after: Key | undefined): Readonly<{ found: readonly Found[]; next: Key | undefined }> {
    const { objects, history } = this.#parts;
    const { rowsMax, bytesMax } = this.#limits;
    const found: Found[] = [];
    let [examined, bytes] = [0, 0];
    let last: Key | undefined;
    for (const [object, changed] of objects.scanWith(history.changedKeys(this.#scope, this.revision), this.#scope, after)) {
      if (examined >= keysAtOnce || found.length >= rowsMax || bytes >= bytesMax) return { found, next: last };
      examined += 1;
      const { key } = (object ?? changed)!;
      last = key;
      const stood = matches(this.#scope, key) ? this.#valueAt(object, changed) : undefined;
      if (stood === undefined) continue;
      found.push(stood);
      bytes += 'body' in stood ? stood.body.bytes.length : stood.bytes;
    }
    return { found, next: undefined };
  }

  /** The object of a key at the revision. */
  #valueAt(object: IndexedObject | undefined, changed: ChangedKey | undefined): Found | undefined {
    const change = changed && firstChangeAbove(changed, this.revision);
    if (change === undefined) return object;
    if (change.kind === 'put' && change.created) return undefined;
    const held = change.previous();
    // The replaced object is not in memory, and etcd did not send it, or fragments.ts dropped it.
    if (held === undefined) throw new Refused(expired(`too old resource version: ${this.revision}`));
    return held;
  }

  async #withBodies(found: readonly Found[]): Promise<readonly StoredObject[]> {
    const indexed = found.flatMap((object) => ('body' in object ? [] : [object]));
    const read = await this.#parts.reader.read(indexed, this.revision);
    let next = 0;
    return found.map((object) => ('body' in object ? object : read[next++]!));
  }
}
