/** What a memory disk knows of shards and links, and how pushes change that. The rules are those of domain/claim.ts. */
import {
  arrived,
  claimed,
  isElsewhere,
  judgeClaim,
  removedAt,
  unknownShard,
  writtenPlainly,
  type Arrival,
  type Claim,
  type ShardState,
} from '../../domain/claim.js';
import { linksMax, type PushOutcome, type Speaker } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import { childOf, type Neighbour } from '../../domain/via.js';
import type { MemoryDisk } from './disk.js';

type Fenced = Extract<PushOutcome, { kind: 'fenced' }>;

const unchanged: PushOutcome = { kind: 'unchanged' };

export class MemoryLinks {
  readonly #disk: MemoryDisk;
  /** Voids the syncs of the shard that are under way. */
  readonly #voided: (shard: ShardName) => void;
  /** Shards that the commit under way has changed. */
  readonly #touched = new Set<ShardName>();

  constructor(disk: MemoryDisk, voided: (shard: ShardName) => void) {
    this.#disk = disk;
    this.#voided = voided;
  }

  known(shard: ShardName): ShardState | undefined {
    return this.#disk.shards.get(shard);
  }

  /** A pusher comes for its shard. */
  acquire(arrival: Arrival): Extract<PushOutcome, { kind: 'acquired' | 'fenced' }> {
    const known = this.known(arrival.shard);
    const state = arrived(this.#disk.cacheId, known, arrival);
    if (state === undefined) return { kind: 'fenced', holder: known };
    if (state !== known) this.#set(state);
    return { kind: 'acquired', term: state.term };
  }

  /** Undefined when the claim takes the shard or is already known. */
  claim(claim: Claim): Fenced | undefined {
    const known = this.known(claim.shard);
    const verdict = judgeClaim(known, claim);
    if (verdict === 'refused') return { kind: 'fenced', holder: known };
    if (verdict === 'takes') this.#set(claimed(claim));
    return undefined;
  }

  /** Undefined when the speaker may push for the shard. */
  refuse(shard: ShardName, by: Speaker): Fenced | undefined {
    const known = this.known(shard);
    return known !== undefined && speaksFor(by, known) ? undefined : { kind: 'fenced', holder: known };
  }

  /** Whether the shard is at another cache, so that a plain writer has to take it over. */
  isElsewhere(shard: ShardName): boolean {
    return isElsewhere(this.known(shard), this.#disk.cacheId);
  }

  /** A plain writer writes: the shard is local from now on. */
  settle(shard: ShardName): void {
    const known = this.known(shard);
    if (known?.via === 'local') return;
    this.#set(writtenPlainly(this.#disk.cacheId, known, shard));
  }

  remove(shard: ShardName, nowMs: number): void {
    this.#set(removedAt(this.#disk.cacheId, this.known(shard), { shard, nowMs }));
  }

  meet(neighbour: Neighbour, cacheId: string): PushOutcome {
    const { links } = this.#disk;
    const known = links.get(neighbour);
    if (known?.cacheId === cacheId) return unchanged;
    const bound = [...links.values()].find((link) => link.cacheId === cacheId && link.neighbour !== 'parent');
    if (neighbour !== 'parent' && bound !== undefined) return { kind: 'bound', name: childOf(bound.neighbour) ?? '' };
    if (neighbour !== 'parent' && known === undefined && links.size >= linksMax) return { kind: 'full' };
    links.set(neighbour, { neighbour, cacheId, position: '' });
    this.#makeStale(neighbour);
    if (neighbour !== 'parent' || known === undefined) return unchanged;
    for (const state of this.#disk.shards.values()) if (state.via === neighbour) this.#set({ ...state, via: undefined });
    return unchanged;
  }

  reach(neighbour: Neighbour, position: string): PushOutcome {
    const { links } = this.#disk;
    const known = links.get(neighbour);
    if (known !== undefined) links.set(neighbour, { ...known, position });
    if (position === '') this.#makeStale(neighbour);
    return unchanged;
  }

  leave(neighbour: Neighbour): PushOutcome {
    this.#disk.links.delete(neighbour);
    for (const state of this.#disk.shards.values()) if (state.via === neighbour) this.#set({ ...state, via: undefined });
    return unchanged;
  }

  forget(shard: ShardName): PushOutcome {
    const { shards, slices } = this.#disk;
    const known = shards.get(shard);
    if (known?.removed !== true || slices.ofShard(shard).some(({ objects }) => objects.size > 0)) return { kind: 'fenced', holder: known };
    shards.delete(shard);
    this.#touched.add(shard);
    this.#voided(shard);
    return unchanged;
  }

  /** The shards that changed since the last call. */
  changed(): readonly ShardState[] {
    const changed = [...this.#touched].map((shard) => this.known(shard) ?? unknownShard(shard));
    this.#touched.clear();
    return changed;
  }

  #makeStale(neighbour: Neighbour): void {
    const { shards, slices } = this.#disk;
    for (const state of shards.values()) {
      if (state.via !== neighbour) continue;
      for (const { slice } of slices.ofShard(state.shard)) slices.sync(slice, { filterHash: '' });
      this.#voided(state.shard);
    }
  }

  /** A sync from one via is no beginning for another. */
  #set(state: ShardState): void {
    const { shards, slices } = this.#disk;
    const { shard, via } = state;
    const before = shards.get(shard)?.via;
    shards.set(shard, state);
    this.#touched.add(shard);
    if (via === before) return;
    for (const { slice } of slices.ofShard(shard)) slices.sync(slice, { syncedTerm: 0, filterHash: '' });
    this.#voided(shard);
  }
}

function speaksFor(by: Speaker, { via, removed, term }: ShardState): boolean {
  if (by.kind === 'link') return via === by.neighbour;
  return via === 'local' && !removed && term === by.term;
}
