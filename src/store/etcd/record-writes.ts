/** Builds comparisons and writes of the records of shards, slices and links. */
import type { ShardState } from '../../domain/claim.js';
import type { Key } from '../../domain/key.js';
import type { Speaker } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Neighbour } from '../../domain/via.js';
import { formatObjectKey } from './object-keys.js';
import type { TransactionParts } from './plan.js';
import { neverSynced, sameFacts, type SliceFacts } from '../decide.js';
import { viaSinceOf, type Versioned } from './published-shards.js';
import type { PublishedState } from './published-state.js';
import { formatRecord, formatRecordKey, type LinkRecord, type RecordKey, type ShardRecord } from './records.js';
import type { Compare, Operation } from './rpc.js';

type SliceChange = Readonly<{ removal?: string; voids?: boolean; begins?: boolean }>;

export class RecordWrites {
  readonly #prefix: string;
  readonly #server: string;
  readonly #published: PublishedState;

  /** `server`: this server's id. */
  constructor(prefix: string, server: string, published: PublishedState) {
    this.#prefix = prefix;
    this.#server = server;
    this.#published = published;
  }

  /**
   * Adds a write of the slice's facts to `written`, if they differ from the stored ones.
   *
   * - `removal`: the server that removes from the slice, if that changes.
   * - `voids`: voids every sync of the slice under way. If the record says so already, it is only
   *   compared and not written, so many transactions may do this at once.
   * - `begins`: a sync begins.
   */
  putFacts(
    written: TransactionParts,
    { shard, resource }: Slice,
    facts: SliceFacts,
    { removal, voids = false, begins = false }: SliceChange = {},
  ): void {
    const slice = { shard, resource };
    const stored = this.#published.shards.sliceRecord(slice);
    const { removal: removalBefore = '', isVoid: wasVoid = false, invalidations = 0, invalidatedBy = '' } = stored?.record ?? {};
    const now = { removal: removal ?? removalBefore, isVoid: voids || (wasVoid && !begins) };
    const isSame = now.removal === removalBefore && now.isVoid === wasVoid && sameFacts(facts, this.#published.shards.facts(slice));
    if (isSame && !voids) return;
    const record: RecordKey = { kind: 'slice', slice };
    written.compare.push(this.#compare(record, stored));
    if (isSame) return;
    if (sameFacts(facts, neverSynced) && now.removal === '' && invalidations === 0 && !voids) {
      written.operations.push(this.remove(record));
      return;
    }
    const by = voids ? { invalidations: invalidations + 1, invalidatedBy: this.#server } : { invalidations, invalidatedBy };
    written.operations.push(
      this.put(record, formatRecord({ ...facts, ...now, ...by, changedMs: this.#published.shards.changedMs(slice) })),
    );
  }

  putShard(state: ShardState, session?: number): Operation {
    const { shard, ...rest } = state;
    const known = this.#published.shards.shard(shard);
    const viaSince = known !== undefined && known.record.via === state.via ? viaSinceOf(known) : 0;
    const record: ShardRecord = { ...rest, viaSince, session: session ?? known?.record.session ?? 0 };
    return this.put({ kind: 'shard', shard }, formatRecord(record));
  }

  putLink(neighbour: Neighbour, record: LinkRecord): Operation {
    return this.put({ kind: 'link', neighbour }, formatRecord(record));
  }

  put(key: RecordKey, value: Uint8Array): Operation {
    return { kind: 'put', key: this.keyOf(key), value };
  }

  remove(key: RecordKey): Operation {
    return { kind: 'delete', key: this.keyOf(key) };
  }

  /** Comparisons that hold only while the speaker speaks for the shard. */
  spokenBy(shard: ShardName, by: Speaker): Compare[] {
    const link = by.kind === 'link' ? [this.compareLink(by.neighbour)] : [];
    return [this.compareShard(shard), ...link];
  }

  compareShard(shard: ShardName): Compare {
    return this.#compare({ kind: 'shard', shard }, this.#published.shards.shard(shard));
  }

  compareSlice({ shard, resource }: Slice): Compare {
    const slice = { shard, resource };
    return this.#compare({ kind: 'slice', slice }, this.#published.shards.sliceRecord(slice));
  }

  compareLink(neighbour: Neighbour): Compare {
    return this.#compare({ kind: 'link', neighbour }, this.#published.shards.link(neighbour));
  }

  keyOf(key: RecordKey): Uint8Array {
    return Buffer.from(formatRecordKey(this.#prefix, key));
  }

  /**
   * Holds while the object is unchanged since the decision. `held`: its revision; undefined if
   * there is no readable object.
   */
  compareObject(key: Key, held: Revision | undefined): Compare {
    return this.#compareText(formatObjectKey(this.#prefix, key), held);
  }

  objectKey(key: Key): Uint8Array {
    return Buffer.from(formatObjectKey(this.#prefix, key));
  }

  #compare(key: RecordKey, stored: Versioned<unknown> | undefined): Compare {
    return this.#compareText(formatRecordKey(this.#prefix, key), stored?.revision);
  }

  /** An unreadable value counts as absent, and is replaced by the write. */
  #compareText(text: string, stored: Revision | undefined): Compare {
    return { key: Buffer.from(text), revision: stored ?? this.#published.unreadableAt(text) };
  }
}
