/**
 * Decides requests to this engine by what is published here, and plans the writes to etcd. etcd
 * applies a write only if everything that the decision rests on is unchanged. Otherwise the
 * committer waits until the change is published here, and requests a new plan.
 *
 * N2 One transaction changes one object. Otherwise several objects would share a revision, and a
 *    client that resumes at that revision could miss some of them.
 */
import assert from 'node:assert/strict';
import { digestOf } from '../../domain/slices/digest.js';
import { unreachable } from '../../domain/errors.js';
import { formatClientKey, type Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import { linkOf, type Push, type Speaker } from '../../domain/push.js';
import { withKept } from '../../json/kept-members.js';
import type { BatchItem } from '../batch-item.js';
import { compared, decideMutation, keepsNames, unsynced } from '../decide.js';
import type { Syncs, Walk } from '../syncs.js';
import { Holders } from './holders.js';
import { formatObjectKey } from './object-keys.js';
import type { IndexedObject } from './object-reader.js';
import { decided, unchanged, write, type Plan, type PushOf, type TransactionParts } from './plan.js';
import { sinceOf } from './published-paths.js';
import type { PublishedBatch, PublishedState } from './published-state.js';
import { RecordWrites } from './record-writes.js';
import { namesakesOf, type RecordKey } from './records.js';
import type { Compare, Operation } from './rpc.js';
import { valueOf } from './stored-values.js';
import { RemovalPlans } from './removal-plans.js';
import { SyncPlans } from './sync-plans.js';

/** `server`: this server's id. */
export type DeciderParts = Readonly<{ prefix: string; cacheId: string; server: string; published: PublishedState; syncs: Syncs }>;

type Spoken = Extract<Push, { by: Speaker }>;

const emptyValue = new Uint8Array();

export class Decider {
  readonly #cacheId: string;
  readonly #published: PublishedState;
  readonly #records: RecordWrites;
  readonly #holders: Holders;
  readonly #syncs: SyncPlans;
  readonly #removals: RemovalPlans;

  constructor({ prefix, cacheId, server, published, syncs }: DeciderParts) {
    const records = new RecordWrites(prefix, server, published);
    this.#cacheId = cacheId;
    this.#published = published;
    this.#records = records;
    this.#holders = new Holders({ cacheId, published, records });
    const parts = { server, published, records, holders: this.#holders, syncs };
    this.#syncs = new SyncPlans(parts);
    this.#removals = new RemovalPlans({ ...parts, idOf: (resource) => this.#syncs.idOf(resource) });
  }

  plan(asked: BatchItem): Plan {
    switch (asked.kind) {
      case 'put':
      case 'delete':
        return this.#mutate(asked);
      case 'acquire':
        return this.#holders.acquire(asked);
      case 'claim':
        return this.#holders.claim(asked);
      case 'clear':
        return this.#removals.clear(asked);
      case 'drop':
        return this.#removals.drop(asked);
      case 'assume':
        return this.#syncs.assume(asked.shard);
      case 'meet':
        return this.#holders.meet(asked);
      case 'reach':
        return this.#holders.reach(asked);
      case 'leave':
        return this.#holders.leave(asked.neighbour);
      case 'resume':
        return this.#resume(asked);
      default:
        return this.#holders.fenced('key' in asked ? asked.key.shard : asked.slice.shard, asked.by) ?? this.#push(asked);
    }
  }

  /**
   * Plans the removal of an object that a walk has reached, if the object has no mark. `by`: who
   * sent the `end`; undefined if a shard or a type is removed.
   */
  planRemoval(key: Key, { marks }: Walk, by: Speaker | undefined): Plan {
    const held = this.#held(key);
    if (held === undefined || !marks.isUnmarked(held.revision)) return unchanged;
    if (by === undefined && !this.#removals.mayRemove(key)) return unchanged;
    const fenced = by === undefined ? undefined : this.#holders.fenced(key.shard, by);
    if (fenced !== undefined) return fenced;
    const written = {
      compare: by === undefined ? [this.#records.compareSlice(key)] : this.#records.spokenBy(key.shard, by),
      operations: [this.#records.put({ kind: 'swept' }, emptyValue)],
    };
    return this.#deletion(held, written);
  }

  /**
   * Plans a new write of `survivor`, the newest object that `mark` names, and the removal of the
   * mark if it is stored.
   */
  planRewrite(mark: string, survivor: IndexedObject | undefined, body: Body | undefined): Plan {
    const record: RecordKey = { kind: 'rewrite', of: mark };
    const revision = this.#published.marks.get(mark);
    if (revision === undefined && (survivor === undefined || !this.#published.needsRewrite(mark))) return unchanged;
    const compare: Compare[] = [{ key: this.#records.keyOf(record), revision: revision ?? 0 }];
    // Either operation shows every server that this write does not confirm the object in a sync
    // (published-state.ts).
    const operations: Operation[] = [
      revision === undefined ? this.#records.put({ kind: 'swept' }, emptyValue) : this.#records.remove(record),
    ];
    if (survivor !== undefined && body !== undefined) {
      compare.push({ key: this.#records.objectKey(survivor.key), revision: survivor.revision });
      operations.push({ kind: 'put', key: this.#records.objectKey(survivor.key), value: valueOf(body) });
      if (survivor.writtenAt !== undefined || this.#published.paths.isContested(survivor.key))
        operations.push(this.#records.put(writtenRecord(survivor.key), Buffer.from(String(sinceOf(survivor)))));
    }
    return write({ compare, operations });
  }

  newestNamesake(mark: string): IndexedObject | undefined {
    const scope = namesakesOf(mark);
    return scope === undefined ? undefined : this.#published.objects.valuesAt(scope).reduce<IndexedObject | undefined>(newer, undefined);
  }

  /** Ends a walk whose writes failed. */
  abandon(walk: Walk): void {
    this.#removals.abandon(walk);
  }

  follow(batch: PublishedBatch): void {
    this.#syncs.follow(batch);
  }

  #mutate(mutation: Mutation): Plan {
    const { shards } = this.#published;
    const { key } = mutation;
    const held = this.#held(key);
    const verdict = decideMutation(mutation, { own: this.#cacheId, known: shards.state(key.shard), held: held?.revision });
    if (verdict.kind === 'refused') return decided(verdict);

    const written: TransactionParts = { compare: [this.#records.compareShard(key.shard)], operations: [] };
    const { shard, isNewState, unsyncs } = verdict;
    if (isNewState) written.operations.push(this.#records.putShard(shard));
    const before = shards.facts(key);
    const facts = isNewState || unsyncs ? unsynced(before) : before;
    this.#records.putFacts(written, key, mutation.kind === 'put' ? { ...facts, cameOver: '' } : facts, unsyncs ? { voids: true } : {});
    // `swept` shows every server that this write does not confirm the object in a sync
    // (published-state.ts).
    if (keepsNames(mutation)) written.operations.push(this.#records.put({ kind: 'swept' }, emptyValue));
    if (mutation.kind === 'put') return this.#putting(key, mutation.body, held, written);
    assert(held !== undefined, 'what is deleted is there');
    return this.#deletion(held, written);
  }

  #push(push: Spoken): Plan {
    switch (push.kind) {
      case 'upsert':
        return this.#upsert(push);
      case 'keep':
        return this.#syncs.keep(this.#held(push.key));
      case 'retract': {
        const held = this.#held(push.key);
        if (held === undefined) return unchanged;
        return this.#deletion(held, { compare: this.#records.spokenBy(push.key.shard, push.by), operations: [] });
      }
      case 'begin':
        return this.#syncs.begin(push);
      case 'invalidate':
        return this.#syncs.invalidate(push);
      case 'compare': {
        const { shards } = this.#published;
        return decided(compared(push, shards.digestOf(push.slice), shards.facts(push.slice)));
      }
      case 'end':
        return this.#syncs.end(push, undefined);
      default:
        return unreachable(push);
    }
  }

  #resume({ push, walk }: Extract<BatchItem, { kind: 'resume' }>): Plan {
    if (push.kind !== 'end') return this.#removals.resume(walk) ?? decided({ kind: 'unbegun' });
    return this.#holders.fenced(push.slice.shard, push.by) ?? this.#syncs.end(push, walk);
  }

  #upsert({ key, body: pushed, by }: PushOf<'upsert'>): Plan {
    const held = this.#held(key);
    const body = by.kind === 'link' ? pushed : withKept(pushed, held?.kept);
    const digest = held === undefined ? undefined : digestOf(key, body);
    const isSame = held?.digest.high === digest?.high && held?.digest.low === digest?.low && held?.bytes === body.bytes.length;
    if (held !== undefined && isSame) return this.#syncs.keep(held);
    const written: TransactionParts = { compare: this.#records.spokenBy(key.shard, by), operations: [] };
    this.#records.putFacts(written, key, { ...this.#published.shards.facts(key), cameOver: linkOf(by) });
    return this.#putting(key, body, held, written);
  }

  #putting(key: Key, body: Body, held: IndexedObject | undefined, { compare, operations }: TransactionParts): Plan {
    const objectKey = this.#records.objectKey(key);
    return write(
      {
        compare: [this.#records.compareObject(key, held?.revision), ...compare],
        operations: [{ kind: 'put', key: objectKey, value: valueOf(body) }, ...operations, ...this.#unwritten(held)],
      },
      (revision) => decided({ kind: 'written', revision }),
    );
  }

  #deletion(held: IndexedObject, { compare, operations }: TransactionParts): Plan {
    const { key, revision } = held;
    const objectKey = this.#records.objectKey(key);
    // Informers' keys lack the shard, so this delete also removes namesakes from informers' caches.
    // The store therefore writes a surviving namesake again. A namesake that is not published here
    // yet is found when the delete is published (published-state.ts).
    const of = formatClientKey(key);
    const marks = this.#isElsewhereToo(key) ? [this.#records.put({ kind: 'rewrite', of }, emptyValue)] : [];
    const planned = write(
      {
        compare: [{ key: objectKey, revision }, ...compare],
        operations: [{ kind: 'delete', key: objectKey }, ...operations, ...marks, ...this.#unwritten(held)],
      },
      (at) => decided({ kind: 'written', revision: at }),
    );
    return { ...planned, deletes: of };
  }

  /** Removes the object's `written` record, which this write outdates. */
  #unwritten(held: IndexedObject | undefined): readonly Operation[] {
    return held?.writtenAt === undefined ? [] : [this.#records.remove(writtenRecord(held.key))];
  }

  /**
   * Whether another shard has a namesake: an object of the same type, logical cluster, namespace
   * and name.
   */
  #isElsewhereToo({ resource: { group, resource, identity }, cluster, namespace, name, shard }: Key): boolean {
    const namesakes = this.#published.objects.valuesAt({ group, resource, identity, shard: '*', cluster, namespace, name });
    return namesakes.some(({ key }) => key.shard !== shard);
  }

  #held(key: Key): IndexedObject | undefined {
    return this.#published.objects.get(key);
  }
}

function writtenRecord(key: Key): RecordKey {
  return { kind: 'written', of: formatObjectKey('', key).slice(1) };
}

function newer(one: IndexedObject | undefined, other: IndexedObject): IndexedObject {
  return one !== undefined && one.revision > other.revision ? one : other;
}
