/**
 * Decides what the committer is asked, one after the other, inside its transaction: the result of a mutation or a push, given who
 * has the shard, what the key holds and what is under way.
 *
 * I20 Only who has a shard speaks for it, in queue order (shard-table.ts). When a shard changes its via, what was synced of it no longer
 *     counts and syncs under way are forgotten; its objects stay until the new via has ended its own sync.
 */
import { type Asked, type Sweeping, littleMax } from '../asked.js';
import assert from 'node:assert/strict';
import { noBuckets } from '../../domain/buckets.js';
import { unreachable } from '../../domain/errors.js';
import { namesOfType, type KeptNames } from '../../domain/kept-names.js';
import { decide, type Mutation } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import { linkOf, type Push } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { Via } from '../../domain/via.js';
import { keptIn, withKept } from '../../json/kept-members.js';
import type { ChangeWriter, Place } from './change-writer.js';
import type { Byproduct, Decided } from './committer-messages.js';
import type { LinkTable } from './link-table.js';
import type { ShardTable } from './shard-table.js';
import type { SliceTable } from './slice-table.js';
import type { SliceRange, Syncs, Walk } from '../syncs.js';
import type { Sweep } from './sweep.js';

export type DeciderParts = Readonly<{
  shards: ShardTable;
  links: LinkTable;
  slices: SliceTable;
  writer: ChangeWriter;
  sweep: Sweep;
  underWay: Syncs;
  keptNames: KeptNames;
}>;

type Spoken = Extract<Push, { by: unknown }>;

type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;

const unchanged: Decided = { kind: 'unchanged' };
const unbegun: Decided = { kind: 'unbegun' };

export class Decider {
  readonly #parts: DeciderParts;
  #swept: Byproduct[] = [];
  #asked = 0;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
  }

  /** What ends and removals have deleted since `open`. */
  get swept(): readonly Byproduct[] {
    return this.#swept;
  }

  /** Begins a commit of so many items. */
  open(asked: number): void {
    this.#swept = [];
    this.#asked = asked;
  }

  decide(asked: Asked): Decided {
    switch (asked.kind) {
      case 'put':
      case 'delete':
        return this.#mutate(asked);
      case 'acquire':
        return this.#acquire(asked);
      case 'claim':
        return this.#moved(asked.shard, () => this.#parts.shards.claim(asked)) ?? unchanged;
      case 'clear':
        return this.#clear(asked);
      case 'drop':
        return this.#beginRemoval({ resource: this.#parts.writer.resource(asked.resource) }, asked.through);
      case 'assume':
        return this.#assume(asked);
      case 'meet':
        return this.#meet(asked);
      case 'reach':
        return this.#reach(asked);
      case 'leave':
        return this.#leave(asked);
      case 'forget':
        return this.#forget(asked);
      case 'resume':
        return this.#resume(asked.push, asked.walk);
      default:
        return this.#fenced(asked) ?? this.#push(asked);
    }
  }

  #mutate(mutation: Mutation): Decided {
    const { shards, writer, underWay } = this.#parts;
    const { key, takes = false, bySource = false } = mutation;
    const keeps = mutation.kind === 'put' && mutation.keeps === true;
    if (!takes && shards.isElsewhere(key.shard)) return { kind: 'refused', why: 'elsewhere' };
    const place = writer.place(key);
    const held = writer.held(place);
    const verdict = decide(mutation, held?.revision);
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    this.#moved(key.shard, () => shards.settle(key.shard));
    // A pusher that comes back syncs again what others have written. While it is there, only the shard itself may (intake/plain-writes.ts).
    if (!bySource && !keeps && shards.known(key.shard)?.plain !== true) this.#invalidate({ kind: 'invalidate', slice: key });
    if (mutation.kind === 'put') {
      const { body, path } = mutation;
      const revision = writer.put(key, place, { body, path, cameOver: '' }, held);
      if (keeps && held !== undefined) underWay.rewritten(place, held.revision, revision);
      return written(revision, held?.revision);
    }
    assert(held !== undefined, 'what is deleted is there');
    return written(writer.delete(key, place, held), held.revision);
  }

  /** A pusher that comes for its shard starts over: a sync that another connection left unfinished does not count. */
  #acquire(arrival: PushOf<'acquire'>): Decided {
    const { shards, underWay } = this.#parts;
    const { shard } = arrival;
    const decided = this.#moved(shard, () => shards.acquire(arrival));
    if (decided.kind === 'acquired') underWay.forgetRange({ shard });
    return decided;
  }

  /** A sync of the shard's former via is void for the new one. */
  #moved<T>(shard: ShardName, change: () => T): T {
    const { shards, slices, underWay } = this.#parts;
    const viaNow = (): Via | undefined => shards.known(shard)?.via;
    const before = viaNow();
    const result = change();
    if (viaNow() === before) return result;
    slices.invalidateAll(shard);
    underWay.forgetRange({ shard });
    return result;
  }

  #fenced(push: Spoken): Decided | undefined {
    const { shard } = 'key' in push ? push.key : push.slice;
    return this.#parts.shards.refuse(shard, push.by);
  }

  #push(push: Spoken): Decided {
    switch (push.kind) {
      case 'upsert':
        return this.#upsert(push);
      case 'keep':
        return this.#keep(push);
      case 'retract':
        return this.#retract(push);
      case 'end':
        return this.#end(push, undefined);
      case 'begin':
      case 'invalidate':
        return this.#invalidate(push);
      case 'compare':
        return this.#compare(push);
      default:
        return unreachable(push);
    }
  }

  #upsert(push: PushOf<'upsert'>): Decided {
    const { writer, underWay } = this.#parts;
    const { key, path, by } = push;
    const place = writer.place(key);
    const body = this.#keeping(push, place);
    const { held, isSame } = writer.compare(place, body);
    if (held === undefined || !isSame) return written(writer.put(key, place, { body, path, cameOver: linkOf(by) }, held), held?.revision);
    underWay.confirm(place, held.revision);
    return unchanged;
  }

  /** What a pusher sends of an object, with the names that are kept on its copy (KEPT-1). */
  #keeping({ key, body, by }: PushOf<'upsert'>, place: Place): Body {
    const names = by.kind === 'link' ? undefined : namesOfType(this.#parts.keptNames, key.resource);
    const copy = names && this.#parts.writer.body(place);
    return names === undefined || copy === undefined ? body : withKept(body, keptIn(copy, names));
  }

  #keep({ key }: PushOf<'keep'>): Decided {
    const { writer, underWay } = this.#parts;
    const place = writer.place(key);
    const held = writer.held(place);
    if (held !== undefined) underWay.confirm(place, held.revision);
    return unchanged;
  }

  #retract({ key }: PushOf<'retract'>): Decided {
    const { writer } = this.#parts;
    const place = writer.place(key);
    const held = writer.held(place);
    return held === undefined ? unchanged : written(writer.delete(key, place, held), held.revision);
  }

  #invalidate(push: Omit<PushOf<'begin'>, 'by'> | Omit<PushOf<'invalidate'>, 'by'>): Decided {
    const { slices, writer, underWay } = this.#parts;
    const { slice } = push;
    const resource = writer.resource(slice.resource);
    if (push.kind === 'invalidate' || push.cluster === undefined) slices.invalidate(slice, resource);
    if (push.kind === 'begin') underWay.begin(slice.shard, resource, writer.revision, push.cluster);
    else underWay.forget(slice.shard, resource);
    return unchanged;
  }

  #compare({ slice, digest }: PushOf<'compare'>): Decided {
    const { slices, writer } = this.#parts;
    const resource = writer.resource(slice.resource);
    const own = slices.digestOf(slice, resource);
    return own === digest ? unchanged : { kind: 'differs', digest: own, isCurrent: slices.hashOf(slice, resource) !== '' };
  }

  #resume(push: Sweeping, walk: number): Decided {
    if (push.kind === 'end') return this.#fenced(push) ?? this.#end(push, walk);
    const known = this.#parts.underWay.removal(walk);
    return known === undefined ? unbegun : this.#remove(known);
  }

  #end(push: PushOf<'end'>, resumed: number | undefined): Decided {
    const { slices, writer, underWay } = this.#parts;
    const { slice, cluster, filterHash } = push;
    const id = writer.resource(slice.resource);
    const sync = underWay.running(slice.shard, id, cluster);
    if ((sync ?? resumed) === undefined && filterHash !== '' && slices.hashOf(slice, id) === filterHash) return this.#synced(push, id);
    // A full sync with another walk, or none, is another sync, which began meanwhile.
    if (sync === undefined || (resumed !== undefined && sync.walk?.number !== resumed)) return unbegun;
    if (push.buckets === noBuckets) return this.#ended(push, id, { kind: 'swept', removed: 0 });
    const spared = (): ReadonlySet<string> | undefined => (cluster === undefined ? underWay.clustersUnderWay(slice.shard, id) : undefined);
    sync.walk ??= underWay.walk(sync.marks, [{ id, slice }], { ...push, spared: spared() });
    // If the slice held little before this commit, others of its lane follow in the same commit: it must finish.
    const held = slices.objectsOf(slice, id);
    const decided = this.#step(sync.walk, held <= littleMax + this.#asked ? held : 0);
    return decided.kind === 'partial' ? decided : this.#ended(push, id, decided);
  }

  #ended(push: PushOf<'end'>, id: number, decided: Decided): Decided {
    const whole = this.#parts.underWay.ended(id, push);
    if (whole !== undefined) this.#synced(whole, id);
    return decided;
  }

  #synced({ slice, by, filterHash, term }: PushOf<'end'>, id: number): Decided {
    const { shards, slices } = this.#parts;
    const known = shards.known(slice.shard);
    assert(known !== undefined, 'whoever ends a sync has the shard');
    const cameOver = linkOf(by);
    slices.sync(slice, id, { syncedTerm: term ?? known.term, filterHash: cameOver === '' ? '' : filterHash, cameOver });
    return { kind: 'swept', removed: 0 };
  }

  #clear({ shard, fence, nowMs, through, onlyRemoved = false }: PushOf<'clear'>): Decided {
    if (onlyRemoved && this.#parts.shards.known(shard)?.removed !== true) return unchanged;
    if (fence) this.#moved(shard, () => this.#parts.shards.remove(shard, nowMs));
    return this.#beginRemoval({ shard }, through);
  }

  #assume({ shard }: PushOf<'assume'>): Decided {
    const { shards, slices } = this.#parts;
    const known = shards.known(shard);
    if (known?.via === 'local' && known.plain) slices.assume(shard, known.term);
    return unchanged;
  }

  #meet({ neighbour, cacheId }: PushOf<'meet'>): Decided {
    const { shards, links } = this.#parts;
    const met = links.meet(neighbour, cacheId);
    if (met.kind === 'bound' || met.kind === 'full') return met;
    if (met.kind === 'same') return unchanged;
    for (const shard of shards.of(neighbour)) {
      if (neighbour === 'parent' && met.kind === 'another') this.#moved(shard, () => shards.leaveVia(shard));
      this.#makeStale(shard);
    }
    return unchanged;
  }

  /** No slice of it is current, and no sync of it goes on. */
  #makeStale(shard: ShardName): void {
    this.#parts.slices.makeStale(shard);
    this.#parts.underWay.forgetRange({ shard });
  }

  /** Without a position no slice that comes over the link is current with it. */
  #reach({ neighbour, position }: PushOf<'reach'>): Decided {
    const { shards, links } = this.#parts;
    const isKnown = links.reach(neighbour, position);
    if (isKnown && position === '') for (const shard of shards.of(neighbour)) this.#makeStale(shard);
    return unchanged;
  }

  #leave({ neighbour }: PushOf<'leave'>): Decided {
    const { shards, links } = this.#parts;
    links.leave(neighbour);
    for (const shard of shards.of(neighbour)) this.#moved(shard, () => shards.leaveVia(shard));
    return unchanged;
  }

  /** Its slices go with it: those that hold nothing but were synced would bring its name back at the next start. */
  #forget({ shard }: PushOf<'forget'>): Decided {
    const { shards, slices, underWay } = this.#parts;
    const fenced = shards.forget(shard, slices.held({ shard }).length > 0);
    if (fenced !== undefined) return fenced;
    slices.forgetSynced({ shard });
    underWay.forgetRange({ shard });
    return unchanged;
  }

  /** Objects that are written after `through`, or written or synced while the removal is under way, stay: they belong to the time after it. */
  #beginRemoval(range: SliceRange, through: Revision | undefined): Decided {
    const { slices, writer, underWay } = this.#parts;
    underWay.forgetRange(range);
    slices.forgetSynced(range);
    return this.#remove(underWay.beginRemoval(range, { now: writer.revision, through }, slices.held(range)));
  }

  #remove(walk: Walk): Decided {
    const decided = this.#step(walk);
    if (decided.kind === 'swept') this.#parts.underWay.endRemoval(walk);
    return decided;
  }

  #step(walk: Walk, atOnce = 0): Extract<Decided, { kind: 'swept' | 'partial' }> {
    const swept = this.#parts.sweep.step(walk, atOnce);
    this.#swept.push(...swept);
    const removed = swept.length;
    return walk.slices.length === 0 ? { kind: 'swept', removed } : { kind: 'partial', removed, walk: walk.number };
  }
}

function written(revision: Revision, replaced: Revision = 0): Decided {
  return { kind: 'written', revision, replaced };
}
