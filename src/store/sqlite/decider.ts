/**
 * Decides the items of a batch in order, inside the committer's transaction. The result depends on
 * who has the shard, which object the key has, and which syncs are under way.
 *
 * I20 Only the speaker that has a shard may push for it, in queue order (shard-table.ts). When a
 *     shard's via changes, the shard's slices no longer count as synced, and their syncs under way
 *     are void. The objects stay until a sync over the new via ends.
 */
import { type BatchItem, type Sweeping, oneStepObjectsMax } from '../batch-item.js';
import assert from 'node:assert/strict';
import { unreachable } from '../../domain/errors.js';
import { namesOfType, type KeptNames } from '../../domain/kept-names.js';
import type { Mutation } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import { isForgotten, linkOf, type Push } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { Via } from '../../domain/via.js';
import { keptIn, withKept } from '../../json/kept-members.js';
import type { ChangeWriter, RowKey } from './change-writer.js';
import type { Byproduct, Decided } from './committer-messages.js';
import {
  assumed,
  cleared,
  compared,
  isAssumable,
  isOvertaken,
  decideEnd,
  decideMutation,
  keepsNames,
  voidsShards,
  stale,
  synced,
  unsynced,
  withoutVia,
} from '../decide.js';
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
  syncs: Syncs;
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

  /** Deletes by sweeps since `open`. */
  get swept(): readonly Byproduct[] {
    return this.#swept;
  }

  /** Begins a commit. `asked`: the number of its items. */
  open(asked: number): void {
    this.#swept = [];
    this.#asked = asked;
  }

  decide(asked: BatchItem): Decided {
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
      case 'resume':
        return this.#resume(asked.push, asked.walk);
      default:
        return this.#fenced(asked) ?? this.#push(asked);
    }
  }

  #mutate(mutation: Mutation): Decided {
    const { shards, writer, syncs } = this.#parts;
    const { key } = mutation;
    const place = writer.rowKey(key);
    const held = writer.current(place);
    const verdict = decideMutation(mutation, { own: shards.own, known: shards.known(key.shard), held: held?.revision });
    if (verdict.kind === 'refused') return verdict;
    if (verdict.isNewState) this.#moved(key.shard, () => shards.set(verdict.shard));
    if (verdict.unsyncs) this.#invalidate({ kind: 'invalidate', slice: key });
    if (mutation.kind === 'put') {
      const { body, path } = mutation;
      const revision = writer.put(key, place, { body, path, cameOver: '' }, held);
      if (keepsNames(mutation) && held !== undefined) syncs.rewritten(place, held.revision, revision);
      return written(revision, held?.revision);
    }
    assert(held !== undefined, 'what is deleted is there');
    return written(writer.delete(key, place, held), held.revision);
  }

  /**
   * A pusher that acquires its shard starts over, so unfinished syncs of an earlier connection are
   * void.
   */
  #acquire(arrival: PushOf<'acquire'>): Decided {
    const { shards, syncs } = this.#parts;
    const { shard } = arrival;
    const decided = this.#moved(shard, () => shards.acquire(arrival));
    if (decided.kind === 'acquired') syncs.forgetRange({ shard });
    return decided;
  }

  /** If `change` gives the shard another via, syncs over the former via are void. */
  #moved<T>(shard: ShardName, change: () => T): T {
    const { shards, slices, syncs } = this.#parts;
    const viaNow = (): Via | undefined => shards.known(shard)?.via;
    const before = viaNow();
    const result = change();
    if (viaNow() === before) return result;
    slices.updateAllFacts({ shard }, unsynced);
    syncs.forgetRange({ shard });
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
    const { writer, syncs } = this.#parts;
    const { key, path, by } = push;
    const place = writer.rowKey(key);
    const body = this.#keeping(push, place);
    const { held, isSame } = writer.compare(place, body);
    if (held === undefined || !isSame) return written(writer.put(key, place, { body, path, cameOver: linkOf(by) }, held), held?.revision);
    syncs.confirm(place, held.revision);
    return unchanged;
  }

  /** The pushed body, and the kept names of the stored copy (KEPT-1). */
  #keeping({ key, body, by }: PushOf<'upsert'>, place: RowKey): Body {
    const names = by.kind === 'link' ? undefined : namesOfType(this.#parts.keptNames, key.resource);
    const copy = names && this.#parts.writer.body(place);
    return names === undefined || copy === undefined ? body : withKept(body, keptIn(copy, names));
  }

  #keep({ key }: PushOf<'keep'>): Decided {
    const { writer, syncs } = this.#parts;
    const place = writer.rowKey(key);
    const held = writer.current(place);
    if (held !== undefined) syncs.confirm(place, held.revision);
    return unchanged;
  }

  #retract({ key }: PushOf<'retract'>): Decided {
    const { writer } = this.#parts;
    const place = writer.rowKey(key);
    const held = writer.current(place);
    return held === undefined ? unchanged : written(writer.delete(key, place, held), held.revision);
  }

  #invalidate(push: Omit<PushOf<'begin'>, 'by'> | Omit<PushOf<'invalidate'>, 'by'>): Decided {
    const { slices, writer, syncs } = this.#parts;
    const { slice } = push;
    const resource = writer.resource(slice.resource);
    if (push.kind === 'invalidate' || push.cluster === undefined) slices.updateFacts(slice, resource, unsynced);
    if (push.kind === 'begin') syncs.begin(slice.shard, resource, writer.revision, push.cluster);
    else syncs.forget(slice.shard, resource);
    return unchanged;
  }

  #compare(push: PushOf<'compare'>): Decided {
    const { slices, writer } = this.#parts;
    const resource = writer.resource(push.slice.resource);
    return compared(push, slices.digestOf(push.slice, resource), slices.facts(push.slice, resource));
  }

  #resume(push: Sweeping, walk: number): Decided {
    if (push.kind === 'end') return this.#fenced(push) ?? this.#end(push, walk);
    const known = this.#parts.syncs.removal(walk);
    return known === undefined ? unbegun : this.#remove(known);
  }

  #end(push: PushOf<'end'>, resumed: number | undefined): Decided {
    const { slices, writer, syncs } = this.#parts;
    const { slice, cluster } = push;
    const id = writer.resource(slice.resource);
    const sync = syncs.running(slice.shard, id, cluster);
    const verdict = decideEnd(push, { sync, resumed, facts: slices.facts(slice, id) });
    if (verdict === 'synced') return this.#synced(push, id);
    if (verdict === 'ended') return this.#ended(push, id, { kind: 'swept', removed: 0 });
    if (verdict === 'unbegun' || sync === undefined) return unbegun;
    const spared = (): ReadonlySet<string> | undefined => (cluster === undefined ? syncs.clustersUnderWay(slice.shard, id) : undefined);
    sync.walk ??= syncs.walk(sync.marks, [{ id, slice }], { ...push, spared: spared() });
    // If the slice was small before this commit, the commit may contain later pushes of the lane.
    // So the `end` must finish in one step.
    const held = slices.objectsOf(slice, id);
    const decided = this.#step(sync.walk, held <= oneStepObjectsMax + this.#asked ? held : 0);
    return decided.kind === 'partial' ? decided : this.#ended(push, id, decided);
  }

  #ended(push: PushOf<'end'>, id: number, decided: Decided): Decided {
    const whole = this.#parts.syncs.ended(id, push);
    if (whole !== undefined) this.#synced(whole, id);
    return decided;
  }

  #synced(end: PushOf<'end'>, id: number): Decided {
    const { shards, slices } = this.#parts;
    slices.set(end.slice, id, synced(end, shards.known(end.slice.shard)));
    return { kind: 'swept', removed: 0 };
  }

  #clear(push: PushOf<'clear'>): Decided {
    const { shard, fence, nowMs, through } = push;
    if (isOvertaken(push, this.#parts.shards.known(shard))) return unchanged;
    if (fence) this.#moved(shard, () => this.#parts.shards.remove(shard, nowMs));
    return this.#beginRemoval({ shard }, through);
  }

  #assume({ shard }: PushOf<'assume'>): Decided {
    const { shards, slices } = this.#parts;
    const known = shards.known(shard);
    // Slices that this commit has emptied are skipped, because the commit forgets them.
    if (isAssumable(known)) slices.updateAllFacts({ shard }, (facts) => (isForgotten(facts) ? facts : assumed(facts, known.term)));
    return unchanged;
  }

  #meet(push: PushOf<'meet'>): Decided {
    const { shards, links } = this.#parts;
    const { neighbour } = push;
    const met = links.meet(push);
    if (met.kind === 'bound' || met.kind === 'full') return met;
    if (met.kind === 'same') return unchanged;
    for (const state of shards.withVia(neighbour)) {
      if (voidsShards(neighbour, met)) this.#moved(state.shard, () => shards.set(withoutVia(state)));
      this.#makeStale(state.shard);
    }
    return unchanged;
  }

  /** No slice of the shard is current, and its syncs under way are void. */
  #makeStale(shard: ShardName): void {
    this.#parts.slices.updateAllFacts({ shard }, stale);
    this.#parts.syncs.forgetRange({ shard });
  }

  /** Without a position, no slice of the link is current. */
  #reach({ neighbour, position }: PushOf<'reach'>): Decided {
    const { shards, links } = this.#parts;
    const isKnown = links.reach(neighbour, position);
    if (isKnown && position === '') for (const { shard } of shards.withVia(neighbour)) this.#makeStale(shard);
    return unchanged;
  }

  #leave({ neighbour }: PushOf<'leave'>): Decided {
    const { shards, links } = this.#parts;
    links.leave(neighbour);
    for (const state of shards.withVia(neighbour)) this.#moved(state.shard, () => shards.set(withoutVia(state)));
    return unchanged;
  }

  /** Objects that are written after `through`, or written or synced during the removal, stay. */
  #beginRemoval(range: SliceRange, through: Revision | undefined): Decided {
    const { slices, writer, syncs } = this.#parts;
    syncs.forgetRange(range);
    slices.updateAllFacts(range, cleared);
    return this.#remove(syncs.beginRemoval(range, { now: writer.revision, through }, slices.withObjects(range)));
  }

  #remove(walk: Walk): Decided {
    const decided = this.#step(walk);
    if (decided.kind === 'swept') this.#parts.syncs.endRemoval(walk);
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
