/**
 * The store as anyone would write it with unlimited memory and time: an array of changes, from
 * which every state is replayed from the beginning. It is right because it is obvious; the real
 * store is compared with it.
 */
import { formatClientKey, type Key } from '../../../src/domain/key.js';
import { decideClaim, arrived, claimed, type ShardState } from '../../../src/domain/claim.js';
import { decide, type Mutation, type Outcome } from '../../../src/domain/mutation.js';
import type { LinkState, Push, PushOutcome } from '../../../src/domain/push.js';
import { formatResource } from '../../../src/domain/resource.js';
import type { Revision } from '../../../src/domain/revision.js';
import { matches, type Scope } from '../../../src/domain/scope.js';
import type { ShardName } from '../../../src/domain/shard.js';
import { childOf, type Neighbour, type Via } from '../../../src/domain/via.js';
import { formatSlice, type Slice } from '../../../src/domain/slice.js';
import { keyText } from '../../contract/read-all.js';

type Held = Readonly<{ key: Key; revision: Revision; body: string }>;

/** Objects of a slice that no push has marked since the slice's begin. */
type Unspoken = Set<string>;

type ModelChange = Readonly<{ kind: 'create' | 'update' | 'delete'; key: Key; revision: Revision; replaced: Revision }>;

export type ModelOutcome = Readonly<{ kind: 'written'; revision: Revision }> | Extract<Outcome, { kind: 'refused' }>;

/** Under which term and filter hash a slice was synced, whether or not it holds anything. */
type Synced = { shard: string; term: number; filterHash: string };

export class ModelStore {
  /** The change at revision r is at index r - 1. */
  readonly #changes: ModelChange[] = [];
  /** The present state by key. */
  readonly #current = new Map<string, Held>();
  /** The id of the store. */
  readonly #own: string;
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #syncs = new Map<string, { shard: string; unspoken: Unspoken; awaitedBy: Synced | undefined; ended: Set<string> }>();
  readonly #synced = new Map<string, Synced>();
  readonly #links = new Map<Neighbour, LinkState>();

  constructor(own: string) {
    this.#own = own;
  }

  get published(): Revision {
    return this.#changes.length;
  }

  submit(mutation: Mutation): ModelOutcome {
    const { key } = mutation;
    const shard = this.#shards.get(key.shard);
    const isElsewhere = shard !== undefined && !shard.removed && shard.via !== 'local' && shard.origin !== this.#own;
    if (isElsewhere && mutation.takes !== true) return { kind: 'refused', why: 'elsewhere' };
    const verdict = decide(mutation, this.held(key));
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    const term = this.termOf(key.shard) + 1;
    if (shard?.via !== 'local')
      this.#setShard({ shard: key.shard, term, process: '', removed: false, origin: this.#own, via: 'local', plain: true });
    if (mutation.bySource !== true && this.#shards.get(key.shard)?.plain !== true) this.#invalidate(key);
    return { kind: 'written', revision: mutation.kind === 'put' ? this.#put(key, textOf(mutation.body)) : this.#delete(key) };
  }

  push(push: Push): PushOutcome {
    if (push.kind === 'acquire') return this.#acquire(push);
    if (push.kind === 'claim') return this.#claim(push);
    if (push.kind === 'clear') return this.#clear(push);
    if (push.kind === 'drop') return this.#drop(push);
    if (push.kind === 'assume') return this.#assume(push);
    if (push.kind === 'meet') return this.#meet(push);
    if (push.kind === 'reach') return this.#reach(push);
    if (push.kind === 'leave') return this.#leave(push.neighbour);
    const slice = 'key' in push ? push.key : push.slice;
    const holder = this.#shards.get(slice.shard);
    const { by } = push;
    const isTheirs = by.kind === 'link' ? holder?.via === by.neighbour : holder?.via === 'local' && holder.term === by.term;
    if (!isTheirs) return { kind: 'fenced', holder };
    switch (push.kind) {
      case 'begin':
        if (push.cluster === undefined) this.#invalidate(slice);
        this.#syncs.set(syncName(slice, push.cluster), {
          shard: slice.shard,
          awaitedBy: this.#syncs.get(syncName(slice, push.cluster))?.awaitedBy,
          ended: new Set(),
          unspoken: new Set(this.#keysOf(slice, push.cluster).map(keyText)),
        });
        return { kind: 'unchanged' };
      case 'invalidate':
        this.#invalidate(slice);
        return { kind: 'unchanged' };
      case 'keep':
        this.#speakOf(push.key);
        return { kind: 'unchanged' };
      case 'upsert':
        if (this.#current.get(keyText(push.key))?.body !== textOf(push.body))
          return { kind: 'written', revision: this.#put(push.key, textOf(push.body)) };
        this.#speakOf(push.key);
        return { kind: 'unchanged' };
      case 'retract':
        return this.held(push.key) === undefined ? { kind: 'unchanged' } : { kind: 'written', revision: this.#delete(push.key) };
      case 'compare':
        throw new Error('digests are not modelled');
      default:
        return this.#end(push);
    }
  }

  /** A restart forgets the syncs under way. */
  forgetSyncs(): void {
    this.#syncs.clear();
  }

  shards(): readonly string[] {
    return [...this.#shards.values()].map(shardText).toSorted();
  }

  /**
   * Each slice that holds something or was ever synced: its number of objects, and by whom it is
   * synced.
   */
  slices(): readonly string[] {
    const counts = new Map<string, number>([...this.#synced.keys()].map((slice) => [slice, 0]));
    for (const { key } of this.#current.values()) counts.set(formatSlice(key), (counts.get(formatSlice(key)) ?? 0) + 1);
    const received = (slice: string): string => {
      const synced = this.#synced.get(slice);
      return synced === undefined ? 'never' : `${synced.term} ${synced.filterHash}`;
    };
    return [...counts].map(([slice, count]) => `${slice} ${count} ${received(slice)}`).toSorted();
  }

  links(): readonly string[] {
    return [...this.#links.values()].map(linkText).toSorted();
  }

  termOf(shard: ShardName): number {
    return this.#shards.get(shard)?.term ?? 0;
  }

  viaOf(shard: ShardName): Via | undefined {
    return this.#shards.get(shard)?.via;
  }

  /** Whether the link was ever open. */
  hasMet(neighbour: Neighbour): boolean {
    return this.#links.has(neighbour);
  }

  held(key: Key): Revision | undefined {
    return this.#current.get(keyText(key))?.revision;
  }

  /** What the scope held at a revision, unordered. */
  at(revision: Revision, scope: Scope): readonly string[] {
    const state = new Map<string, Revision>();
    for (const change of this.#between(scope, 0, revision)) {
      if (change.kind === 'delete') state.delete(keyText(change.key));
      else state.set(keyText(change.key), change.revision);
    }
    return [...state].map(([key, held]) => `${key}@${held}`);
  }

  changes(scope: Scope, after: Revision, upTo: Revision): readonly string[] {
    return this.#between(scope, after, upTo).map(
      ({ kind, key, revision, replaced }) => `${revision} ${kind} ${keyText(key)} of ${replaced}`,
    );
  }

  touched(scope: Scope, after: Revision, upTo: Revision): readonly string[] {
    return [...new Set(this.#between(scope, after, upTo).map(({ key }) => keyText(key)))].toSorted();
  }

  #between(scope: Scope, after: Revision, upTo: Revision): readonly ModelChange[] {
    return this.#changes.slice(after, upTo).filter(({ key }) => matches(scope, key));
  }

  #claim(claim: Extract<Push, { kind: 'claim' }>): PushOutcome {
    const known = this.#shards.get(claim.shard);
    const verdict = decideClaim(known, claim);
    if (verdict === 'refused') return { kind: 'fenced', holder: known };
    if (verdict === 'takes') this.#setShard(claimed(claim));
    return { kind: 'unchanged' };
  }

  #acquire(arrival: Extract<Push, { kind: 'acquire' }>): PushOutcome {
    const known = this.#shards.get(arrival.shard);
    const state = arrived(this.#own, known, arrival);
    if (state === undefined) return { kind: 'fenced', holder: known };
    if (state !== known) this.#setShard(state);
    this.#forgetSyncs(arrival.shard);
    return { kind: 'acquired', term: state.term };
  }

  #setShard(state: ShardState): void {
    const before = this.#shards.get(state.shard);
    this.#shards.set(state.shard, state);
    if (before?.via === state.via) return;
    this.#forgetSyncs(state.shard);
    for (const synced of this.#synced.values()) if (synced.shard === state.shard) Object.assign(synced, { term: 0, filterHash: '' });
  }

  #forgetSyncs(shard: ShardName): void {
    for (const [slice, sync] of this.#syncs) if (sync.shard === shard) this.#syncs.delete(slice);
  }

  #assume({ shard }: Extract<Push, { kind: 'assume' }>): PushOutcome {
    const known = this.#shards.get(shard);
    if (known?.via !== 'local' || !known.plain) return { kind: 'unchanged' };
    const slices = new Set([...this.#current.values()].map(({ key }) => key).filter((key) => key.shard === shard));
    for (const slice of slices)
      if (!this.#synced.has(formatSlice(slice))) this.#synced.set(formatSlice(slice), { shard, term: 0, filterHash: '' });
    for (const synced of this.#synced.values()) if (synced.shard === shard) synced.term = known.term;
    return { kind: 'unchanged' };
  }

  #meet({ neighbour, cacheId }: Extract<Push, { kind: 'meet' }>): PushOutcome {
    const before = this.#links.get(neighbour);
    if (before?.cacheId === cacheId) return { kind: 'unchanged' };
    const [bound] = [...this.#links.values()].flatMap((link) => (link.cacheId === cacheId ? (childOf(link.neighbour) ?? []) : []));
    if (neighbour !== 'parent' && bound !== undefined) return { kind: 'bound', name: bound };
    this.#links.set(neighbour, { neighbour, cacheId, position: '' });
    for (const [shard, state] of this.#shards) {
      if (state.via === neighbour) this.#forgetSyncs(shard);
      for (const synced of this.#synced.values()) if (synced.shard === shard && state.via === neighbour) synced.filterHash = '';
      if (neighbour === 'parent' && before !== undefined && state.via === 'parent') this.#setShard({ ...state, via: undefined });
    }
    return { kind: 'unchanged' };
  }

  #reach({ neighbour, position }: Extract<Push, { kind: 'reach' }>): PushOutcome {
    const link = this.#links.get(neighbour);
    if (link !== undefined) this.#links.set(neighbour, { ...link, position });
    return { kind: 'unchanged' };
  }

  #leave(neighbour: Neighbour): PushOutcome {
    this.#links.delete(neighbour);
    for (const state of this.#shards.values()) if (state.via === neighbour) this.#setShard({ ...state, via: undefined });
    return { kind: 'unchanged' };
  }

  #clear({ shard, fence, nowMs }: Extract<Push, { kind: 'clear' }>): PushOutcome {
    const term = Math.max(this.termOf(shard) + 1, nowMs);
    const process = this.#shards.get(shard)?.process ?? '';
    if (fence) this.#setShard({ shard, term, process, removed: true, origin: this.#own, via: undefined, plain: false });
    for (const facts of [this.#syncs, this.#synced]) for (const [slice, of] of facts) if (of.shard === shard) facts.delete(slice);
    const inTypes = (a: Key, b: Key): number =>
      formatSlice(a) === formatSlice(b) ? inOrder(a, b) : formatSlice(a) < formatSlice(b) ? -1 : 1;
    const keys = [...this.#current.values()].map(({ key }) => key).filter((key) => key.shard === shard);
    for (const key of keys.toSorted(inTypes)) this.#delete(key);
    return { kind: 'swept', removed: keys.length };
  }

  #drop({ resource }: Extract<Push, { kind: 'drop' }>): PushOutcome {
    const type = formatResource(resource);
    for (const facts of [this.#syncs, this.#synced]) for (const slice of facts.keys()) if (slice.endsWith(`|${type}`)) facts.delete(slice);
    const keys = [...this.#current.values()].map(({ key }) => key).filter((key) => formatResource(key.resource) === type);
    const inShards = (a: Key, b: Key): number => (a.shard === b.shard ? inOrder(a, b) : a.shard < b.shard ? -1 : 1);
    for (const key of keys.toSorted(inShards)) this.#delete(key);
    return { kind: 'swept', removed: keys.length };
  }

  #end({ slice, cluster, filterHash, term = this.termOf(slice.shard) }: Extract<Push, { kind: 'end' }>): PushOutcome {
    const sync = this.#syncs.get(syncName(slice, cluster));
    const isCurrent = filterHash !== '' && this.#synced.get(formatSlice(slice))?.filterHash === filterHash;
    if (sync === undefined && !isCurrent) return { kind: 'unbegun' };
    const facts = { shard: slice.shard, term, filterHash };
    if (sync === undefined) {
      this.#synced.set(formatSlice(slice), facts);
      return { kind: 'swept', removed: 0 };
    }
    const isSpared = (key: Key): boolean => cluster === undefined && this.#syncs.has(syncName(slice, key.cluster));
    const keys = this.#keysOf(slice).filter((key) => sync.unspoken.has(keyText(key)) && !isSpared(key));
    for (const key of keys) this.#delete(key);
    this.#syncs.delete(syncName(slice, cluster));
    const underWay = [...this.#syncs].filter(([name]) => name.endsWith(syncName(slice)));
    if (cluster === undefined) for (const [name, each] of underWay) if (!sync.ended.has(name)) each.awaitedBy = facts;
    if (cluster !== undefined) this.#syncs.get(syncName(slice))?.ended.add(syncName(slice, cluster));
    const ended = cluster === undefined ? facts : sync.awaitedBy;
    // A logical cluster that was under way when the whole slice ended may be incomplete until its
    // own end.
    if (ended !== undefined && underWay.every(([, each]) => each.awaitedBy !== ended)) this.#synced.set(formatSlice(slice), ended);
    return { kind: 'swept', removed: keys.length };
  }

  #invalidate(slice: Slice): void {
    const synced = this.#synced.get(formatSlice(slice));
    if (synced !== undefined) Object.assign(synced, { term: 0, filterHash: '' });
    for (const name of this.#syncs.keys()) if (name.endsWith(syncName(slice))) this.#syncs.delete(name);
  }

  #speakOf(key: Key): void {
    for (const name of [syncName(key), syncName(key, key.cluster)]) this.#syncs.get(name)?.unspoken.delete(keyText(key));
  }

  #keysOf(slice: Slice, cluster?: Key['cluster']): readonly Key[] {
    const keys = [...this.#current.values()].map(({ key }) => key).filter((key) => cluster === undefined || key.cluster === cluster);
    return keys.filter((key) => formatSlice(key) === formatSlice(slice)).toSorted(inOrder);
  }

  #put(key: Key, body: string): Revision {
    this.#speakOf(key);
    return this.#append('put', key, body);
  }

  #delete(key: Key): Revision {
    const revision = this.#append('delete', key, '');
    this.#rewrite(key);
    return revision;
  }

  #append(kind: 'put' | 'delete', key: Key, body: string): Revision {
    const revision = this.published + 1;
    const replaced = this.held(key) ?? 0;
    if (kind === 'put') this.#current.set(keyText(key), { key, revision, body });
    else this.#current.delete(keyText(key));
    this.#changes.push({ kind: kind === 'delete' ? 'delete' : replaced === 0 ? 'create' : 'update', key, revision, replaced });
    return revision;
  }

  /** The store rewrites the newest namesake on another shard. */
  #rewrite(gone: Key): void {
    const namesakes = [...this.#current.values()].filter(({ key }) => formatClientKey(key) === formatClientKey(gone));
    const survivor = namesakes.toSorted((a, b) => b.revision - a.revision)[0];
    if (survivor !== undefined) this.#append('put', survivor.key, survivor.body);
  }
}

/** For the whole slice, or for one of its logical clusters. */
function syncName(slice: Slice, cluster = ''): string {
  return `${cluster}#${formatSlice(slice)}`;
}

export function shardText({ shard, via, term, process, removed, plain }: ShardState): string {
  return `${shard} ${via} ${term} ${process}${removed ? ' removed' : ''}${plain ? ' plain' : ''}`;
}

export function linkText({ neighbour, cacheId, position }: LinkState): string {
  return `${neighbour} ${cacheId} at ${position}`;
}

function textOf({ bytes }: { bytes: Uint8Array }): string {
  return Buffer.from(bytes).toString();
}

function inOrder(a: Key, b: Key): number {
  const [left, right] = [a, b].map(({ cluster, namespace, name }) => [cluster, namespace, name].join('\0')) as [string, string];
  return left === right ? 0 : left < right ? -1 : 1;
}
