/**
 * Decides the requests to a memory store in queue order, and writes to its disk: the semantics of the ports, without SQL. A commit
 * is one call and cannot be cut short; to let it fail, do not call it.
 *
 * Syncs and removals under way are remembered here, so a store that is opened anew knows none.
 */
import { type Asked, type PushDecision, type Sweeping, type Unfinished, littleMax } from '../asked.js';
import { noBuckets } from '../../domain/buckets.js';
import { emptyDigest, formatDigest, type Digest } from '../../domain/digest.js';
import { unreachable } from '../../domain/errors.js';
import { namesOfType, type KeptNames } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import { decide, type Mutation, type Outcome } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import { linkOf, type Push, type PushOutcome, type SliceState, type Speaker } from '../../domain/push.js';
import type { ShardState } from '../../domain/claim.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { Slice } from '../../domain/slice.js';
import { keptIn, withKept } from '../../json/kept-members.js';
import { Syncs, type SliceRange, type Walk } from '../syncs.js';
import { MemoryChanges } from './changes.js';
import type { MemoryDisk } from './disk.js';
import { MemoryLinks } from './links.js';
import type { MemoryRow } from './log.js';
import { saysNothing, type MemorySlice } from './slices.js';
import { MemorySweep } from './sweep.js';

type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;

type Refused = Extract<Outcome, { kind: 'refused' }>;

/** What a commit has done. */
export type MemoryCommitted = Readonly<{
  rows: readonly MemoryRow[];
  movedPaths: readonly string[];
  /** Of deletes that nobody asked for by name. */
  swept: ReadonlySet<Revision>;
  shards: readonly ShardState[];
  slices: readonly SliceState[];
}>;

export type MemoryDecisions = Readonly<{
  mutate: (mutation: Mutation) => Refused | Readonly<{ kind: 'written'; row: MemoryRow }>;
  push: (asked: Asked) => PushDecision;
}>;

const unchanged: PushOutcome = { kind: 'unchanged' };
const stale = { syncedTerm: 0, filterHash: '' };

export class MemoryCommitter {
  readonly #disk: MemoryDisk;
  readonly #digestOf: (key: Key, body: Body) => Digest;
  readonly #keptNames: KeptNames;
  readonly #underWay = new Syncs();
  readonly #links: MemoryLinks;
  readonly #sweep: MemorySweep;
  #asked = 0;
  #changes: MemoryChanges;
  #swept = new Set<Revision>();

  constructor(disk: MemoryDisk, digestOf: (key: Key, body: Body) => Digest, keptNames: KeptNames) {
    this.#disk = disk;
    this.#keptNames = keptNames;
    this.#digestOf = digestOf;
    this.#links = new MemoryLinks(disk, (shard) => this.#underWay.forgetRange({ shard }));
    this.#sweep = new MemorySweep(disk.slices);
    this.#changes = this.#open(0);
  }

  /** `decideAll` asks for each decision in queue order; there are `asked` of them. */
  commit({ nowMs, asked }: Readonly<{ nowMs: number; asked: number }>, decideAll: (decisions: MemoryDecisions) => void): MemoryCommitted {
    this.#asked = asked;
    this.#changes = this.#open(nowMs);
    decideAll({ mutate: (mutation) => this.#mutate(mutation), push: (asked) => this.#decide(asked) });
    const { rows, movedPaths } = this.#changes;
    return { rows, movedPaths, swept: this.#swept, shards: this.#links.changed(), slices: this.#disk.slices.changed() };
  }

  /** A commit failed, so syncs under way have lost some of their marks. */
  forget(): void {
    this.#underWay.open();
    this.#underWay.undo(this.#disk.log.revision);
  }

  #open(nowMs: number): MemoryChanges {
    this.#underWay.open();
    this.#swept = new Set();
    const rewritten = (from: MemoryRow, to: MemoryRow): void => {
      this.#underWay.rewritten(this.#placeOf(from.key), from.revision, to.revision);
    };
    return new MemoryChanges({ disk: this.#disk, digestOf: this.#digestOf, rewritten }, nowMs);
  }

  #mutate(mutation: Mutation): ReturnType<MemoryDecisions['mutate']> {
    const { key } = mutation;
    if (mutation.takes !== true && this.#links.isElsewhere(key.shard)) return { kind: 'refused', why: 'elsewhere' };
    this.#idOf(key.resource);
    const held = this.#changes.held(key);
    const verdict = decide(mutation, held?.revision);
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    this.#links.settle(key.shard);
    const keeps = mutation.kind === 'put' && mutation.keeps === true;
    if (mutation.bySource !== true && !keeps && this.#links.known(key.shard)?.plain !== true) this.#invalidate(key);
    if (mutation.kind === 'put') this.#disk.slices.sync(key, { cameOver: '' });
    if (mutation.kind === 'put') {
      const row = this.#changes.put(key, mutation.body, mutation.path);
      if (keeps && held !== undefined) this.#underWay.rewritten(this.#placeOf(key), held.revision, row.revision);
      return { kind: 'written', row };
    }
    if (held === undefined) throw new Error('a deleted object must exist');
    return { kind: 'written', row: this.#changes.delete(held) };
  }

  #decide(asked: Asked): PushDecision {
    switch (asked.kind) {
      case 'put':
      case 'delete':
        throw new Error('mutations are decided by themselves');
      case 'acquire':
        return this.#acquire(asked);
      case 'claim':
        return this.#links.claim(asked) ?? unchanged;
      case 'clear':
        return this.#clear(asked);
      case 'drop':
        return this.#beginRemoval({ resource: this.#idOf(asked.resource) }, asked.through);
      case 'meet':
        return this.#links.meet(asked.neighbour, asked.cacheId);
      case 'reach':
        return this.#links.reach(asked.neighbour, asked.position);
      case 'leave':
        return this.#links.leave(asked.neighbour);
      case 'forget':
        return this.#links.forget(asked.shard);
      case 'assume':
        return this.#assume(asked);
      case 'resume':
        return this.#resume(asked.push, asked.walk);
      default:
        return this.#links.refuse('key' in asked ? asked.key.shard : asked.slice.shard, asked.by) ?? this.#push(asked);
    }
  }

  #push(push: Extract<Push, { by: Speaker }>): PushDecision {
    // A push of a new type makes the type known, whatever its outcome.
    this.#idOf('key' in push ? push.key.resource : push.slice.resource);
    switch (push.kind) {
      case 'begin':
        if (push.cluster === undefined) this.#disk.slices.sync(push.slice, stale);
        this.#underWay.begin(push.slice.shard, this.#idOf(push.slice.resource), this.#changes.revision, push.cluster);
        return unchanged;
      case 'upsert':
        return this.#upsert(push);
      case 'keep':
        return this.#keep(this.#changes.held(push.key));
      case 'retract': {
        const held = this.#changes.held(push.key);
        return held === undefined ? unchanged : { kind: 'written', revision: this.#changes.delete(held).revision };
      }
      case 'end':
        return this.#end(push, undefined);
      case 'invalidate':
        return this.#invalidate(push.slice);
      case 'compare': {
        const known = this.#disk.slices.of(push.slice);
        const digest = formatDigest(known?.digest ?? emptyDigest);
        return digest === push.digest ? unchanged : { kind: 'differs', digest, isCurrent: (known?.facts.filterHash ?? '') !== '' };
      }
      default:
        return unreachable(push);
    }
  }

  #invalidate(slice: Slice): PushOutcome {
    if (this.#disk.slices.of(slice) !== undefined) this.#disk.slices.sync(slice, stale);
    this.#underWay.forget(slice.shard, this.#idOf(slice.resource));
    return unchanged;
  }

  /** A pusher starts over: it does not continue a sync that another connection left unfinished. */
  #acquire(arrival: PushOf<'acquire'>): PushOutcome {
    const outcome = this.#links.acquire(arrival);
    if (outcome.kind === 'acquired') this.#underWay.forgetRange({ shard: arrival.shard });
    return outcome;
  }

  #upsert({ key, body: pushed, path, by }: PushOf<'upsert'>): PushOutcome {
    const held = this.#changes.held(key);
    const names = by.kind === 'link' ? undefined : namesOfType(this.#keptNames, key.resource);
    const body = names === undefined || held?.body === undefined ? pushed : withKept(pushed, keptIn(held.body, names));
    if (held?.body !== undefined && isSame(held.body, body)) return this.#keep(held);
    const { revision } = this.#changes.put(key, body, path);
    this.#disk.slices.sync(key, { cameOver: linkOf(by) });
    return { kind: 'written', revision };
  }

  #keep(held: MemoryRow | undefined): PushOutcome {
    if (held !== undefined) this.#underWay.confirm(this.#placeOf(held.key), held.revision);
    return unchanged;
  }

  #assume({ shard }: PushOf<'assume'>): PushOutcome {
    const known = this.#links.known(shard);
    if (known?.via !== 'local' || !known.plain) return unchanged;
    for (const each of this.#disk.slices.ofShard(shard))
      if (!saysNothing(each)) this.#disk.slices.sync(each.slice, { syncedTerm: known.term, everSynced: true, cameOver: '' });
    return unchanged;
  }

  #resume(push: Sweeping, walk: number): PushDecision {
    if (push.kind === 'end') return this.#links.refuse(push.slice.shard, push.by) ?? this.#end(push, walk);
    const known = this.#underWay.removal(walk);
    return known === undefined ? { kind: 'unbegun' } : this.#remove(known);
  }

  #end(push: PushOf<'end'>, resumed: number | undefined): PushDecision {
    const { slice, cluster, by, filterHash } = push;
    const id = this.#idOf(slice.resource);
    const sync = this.#underWay.running(slice.shard, id, cluster);
    // A sync with another walk, or none, began meanwhile.
    if (sync === undefined || (resumed !== undefined && sync.walk?.number !== resumed)) {
      const isCurrent = by.kind === 'link' && filterHash !== '' && this.#disk.slices.of(slice)?.facts.filterHash === filterHash;
      if (sync !== undefined || resumed !== undefined || !isCurrent) return { kind: 'unbegun' };
      this.#disk.slices.sync(slice, this.#factsOf(push));
      return { kind: 'swept', removed: 0 };
    }
    if (push.buckets === noBuckets) {
      this.#ended(push, id);
      return { kind: 'swept', removed: 0 };
    }
    const spared = cluster === undefined ? { spared: this.#underWay.clustersUnderWay(slice.shard, id) } : {};
    sync.walk ??= this.#underWay.walk(sync.marks, [{ id, slice }], { ...push, ...spared });
    const held = this.#disk.slices.of(slice)?.objects.size ?? 0;
    const decided = this.#step(sync.walk, held <= littleMax + this.#asked ? held : 0);
    if (decided.kind === 'partial') return decided;
    this.#ended(push, id);
    return decided;
  }

  #ended(push: PushOf<'end'>, id: number): void {
    const whole = this.#underWay.ended(id, push);
    if (whole !== undefined) this.#disk.slices.sync(whole.slice, this.#factsOf(whole));
  }

  #factsOf({ slice, by, filterHash, term }: PushOf<'end'>): MemorySlice['facts'] {
    return {
      syncedTerm: term ?? this.#links.known(slice.shard)?.term ?? 0,
      everSynced: true,
      filterHash: by.kind === 'link' ? filterHash : '',
      cameOver: linkOf(by),
    };
  }

  #clear({ shard, fence, nowMs, through, onlyRemoved = false }: PushOf<'clear'>): PushDecision {
    if (onlyRemoved && this.#links.known(shard)?.removed !== true) return unchanged;
    if (fence) this.#links.remove(shard, nowMs);
    return this.#beginRemoval({ shard }, through);
  }

  /** Objects that are written after `through`, or written or synced while the removal is under way, stay: they belong to the time after it. */
  #beginRemoval(range: SliceRange, through: Revision | undefined): PushDecision {
    this.#underWay.forgetRange(range);
    const slices = this.#in(range);
    for (const { slice } of slices) this.#disk.slices.sync(slice, { syncedTerm: 0, everSynced: false, filterHash: '' });
    const holding = slices
      .filter(({ objects }) => objects.size > 0)
      .map(({ slice }) => ({ id: this.#idOf(slice.resource), slice }))
      .toSorted((a, b) => a.id - b.id || (a.slice.shard < b.slice.shard ? -1 : 1));
    return this.#remove(this.#underWay.beginRemoval(range, { now: this.#changes.revision, through }, holding));
  }

  #remove(walk: Walk): PushDecision {
    const decided = this.#step(walk);
    if (decided.kind === 'swept') this.#underWay.endRemoval(walk);
    return decided;
  }

  #step(walk: Walk, atOnce = 0): Extract<PushOutcome, { kind: 'swept' }> | Unfinished {
    const revisions = this.#sweep.step(walk, this.#changes, atOnce);
    for (const revision of revisions) this.#swept.add(revision);
    const removed = revisions.length;
    return walk.slices.length === 0 ? { kind: 'swept', removed } : { kind: 'partial', removed, walk: walk.number };
  }

  #in(range: SliceRange): readonly MemorySlice[] {
    if ('shard' in range) return this.#disk.slices.ofShard(range.shard);
    return this.#disk.slices.all().filter(({ slice }) => this.#idOf(slice.resource) === range.resource);
  }

  #placeOf({ resource, shard, cluster }: Key): readonly [number, Key['shard'], Key['cluster']] {
    return [this.#idOf(resource), shard, cluster];
  }

  #idOf(resource: Resource): number {
    const text = formatResource(resource);
    const { resources } = this.#disk;
    const known = resources.get(text);
    if (known === undefined) resources.set(text, resources.size);
    return known ?? resources.size - 1;
  }
}

function isSame(one: Body, other: Body): boolean {
  if (one.version !== other.version || one.bytes.length !== other.bytes.length) return false;
  return one.bytes === other.bytes || Buffer.compare(one.bytes, other.bytes) === 0;
}
