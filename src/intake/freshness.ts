/**
 * How fresh each shard's part of this cache is (D10), put together when someone asks: what the store holds, who pushes, and
 * what pushers and other caches said last of it. A cache says what it knows; what nobody tells is null, never guessed.
 *
 *   the shard's side   whether it is connected, and how far behind
 *   local              what its pusher tells; nothing, where it is written over plain HTTP
 *   a link             what the cache at the other end tells; away, while the link is down
 *   none               away
 *
 * Cost: one look at each slice, `shardsPerTurn` shards in a turn of the event loop.
 */
import type { ShardState } from '../domain/claim.js';
import type { Clock, Freshness as FreshnessPort, Pushes, Revisions, StoreIdentity } from '../domain/ports.js';
import type { SliceState } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import { childOf, type LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type {
  CertificateStatus,
  HeldStatus,
  ShardConnection,
  ShardStatus,
  SliceStatus,
  StatusReport,
  TreeStatus,
} from '../domain/status.js';
import type { ToldOfSlice } from '../frames/frame.js';
import type { HeldRemovals } from './held-removals.js';
import type { PushSessions } from './push-sessions.js';
import type { Standbys } from './standbys.js';

/** What links have told of the shards behind them; since when, in milliseconds since 1970. */
export type LinkFreshness = Readonly<{
  presence: (side: LinkSide) => Readonly<{ isUp: boolean; sinceMs: number }>;
  shard: (side: LinkSide, shard: ShardName) => Readonly<{ connected: boolean; sinceMs: number }>;
  slice: (side: LinkSide, slice: Slice) => ToldOfSlice | undefined;
}>;

export type FreshnessParts = Readonly<{
  store: Pick<Pushes, 'shards' | 'slices'> & StoreIdentity & Pick<Revisions, 'published' | 'format'>;
  sessions: Pick<PushSessions, 'presence'>;
  standbys: Pick<Standbys, 'count'>;
  links: LinkFreshness;
  removals: Pick<HeldRemovals, 'held' | 'graceMs'>;
  tree: () => Promise<TreeStatus>;
  clock: Clock;
  /** Gives the event loop back. */
  turn: () => Promise<void>;
  version: string;
  isReady: () => boolean;
  certificates: () => readonly CertificateStatus[];
}>;

const shardsPerTurn = 50;

/** Who tells of a shard: whether they are there, since when, and what they said of a slice. */
type Teller = Readonly<{
  connection: ShardConnection;
  isThere: boolean;
  sinceMs: number;
  told: (slice: Slice) => ToldOfSlice | undefined;
}>;

export class Freshness implements FreshnessPort {
  readonly #parts: FreshnessParts;

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
  }

  async report(): Promise<StatusReport> {
    const { store, clock, version, isReady, turn } = this.#parts;
    const [tree, states, slices] = await Promise.all([this.#parts.tree(), store.shards(), store.slices()]);
    const shards = new Map(states.map((state) => [state.shard, state]));
    const byShard = new Map<ShardName, SliceState[]>(states.map(({ shard }) => [shard, []]));
    for (const state of slices) {
      const known = byShard.get(state.slice.shard);
      if (known === undefined) byShard.set(state.slice.shard, [state]);
      else known.push(state);
    }
    const nowMs = clock.now();
    const names = [...byShard.keys()].toSorted();
    const statuses: ShardStatus[] = [];
    for (const [i, shard] of names.entries()) {
      if (i % shardsPerTurn === shardsPerTurn - 1) await turn();
      statuses.push(this.#shard(shard, shards.get(shard), { slices: byShard.get(shard) ?? [], tree, nowMs }));
    }
    return {
      cache: { id: store.cacheId, version, epoch: store.epoch, resourceVersion: store.format(store.published), ready: isReady() },
      tree,
      certificates: this.#parts.certificates(),
      shards: statuses,
    };
  }

  #shard(
    shard: ShardName,
    state: ShardState | undefined,
    { slices, tree, nowMs }: Readonly<{ slices: readonly SliceState[]; tree: TreeStatus; nowMs: number }>,
  ): ShardStatus {
    const side = state?.side;
    const teller = side === undefined || side === 'local' ? this.#pusher(shard, state, nowMs) : this.#link(shard, side, { tree, nowMs });
    const incarnation = state === undefined || state.plain ? {} : { incarnation: state.incarnation };
    return {
      shard,
      side: side ?? null,
      ...incarnation,
      removed: state?.removed ?? false,
      connection: teller.connection,
      standbys: this.#parts.standbys.count(shard),
      slices: inOrder(slices).map((slice) => ({ ...sliceStatus(slice, state, teller, nowMs), held: this.#held(slice, nowMs) })),
    };
  }

  #held({ slice }: SliceState, nowMs: number): HeldStatus | null {
    const { removals } = this.#parts;
    const held = removals.held(slice);
    if (held === undefined) return null;
    const forMs = age(held.sinceMs, nowMs);
    return { removes: held.removes, forMs, releaseInMs: Math.max(0, removals.graceMs - forMs) };
  }

  #pusher(shard: ShardName, state: ShardState | undefined, nowMs: number): Teller {
    const { peer, sinceMs, told } = this.#parts.sessions.presence(shard);
    const forMs = age(sinceMs, nowMs);
    const connection: ShardConnection = peer === undefined ? { kind: 'away', forMs } : { kind: 'connected', forMs, peer };
    const isPlain = state === undefined || state.plain;
    return {
      connection: isPlain ? { kind: 'plain' } : connection,
      isThere: peer !== undefined,
      sinceMs,
      told: (slice) => told.get(formatSlice(slice)),
    };
  }

  #link(shard: ShardName, side: LinkSide, { tree, nowMs }: Readonly<{ tree: TreeStatus; nowMs: number }>): Teller {
    const { links } = this.#parts;
    const { isUp, sinceMs } = links.presence(side);
    const told = links.shard(side, shard);
    const forMs = age(told.sinceMs, nowMs);
    const peer = childOf(side) ?? tree.parent?.cacheId ?? side;
    return {
      connection: told.connected ? { kind: 'connected', forMs, peer } : { kind: 'away', forMs },
      isThere: isUp,
      sinceMs,
      told: (slice) => links.slice(side, slice),
    };
  }
}

function sliceStatus(state: SliceState, shard: ShardState | undefined, teller: Teller, nowMs: number): Omit<SliceStatus, 'held'> {
  const { slice, synced, objects, bytes, digest, changedMs, edge } = state;
  const { group, resource, identity } = slice.resource;
  const told = teller.told(slice);
  return {
    group,
    resource,
    identity,
    synced,
    stated: statedBy(state, shard),
    whole: shard !== undefined && isWhole(state, shard, told?.whole ?? false),
    inStep: shard?.side === undefined || shard.side === 'local' ? null : edge !== '',
    objects,
    bytes,
    digest,
    changedAgoMs: changedMs === 0 ? null : age(changedMs, nowMs),
    lagMs: told === undefined ? null : teller.isThere ? told.lagMs : told.lagMs + age(teller.sinceMs, nowMs),
    sourceConnected: teller.isThere ? (told?.connected ?? null) : null,
  };
}

/**
 * Whether every object that the shard has of a slice is here, but for its lag: whoever has the shard now has stated it, whoever tells of it says so
 * (`told`), and where that is a link, changes keep it up. Of a plain writer it is assumed.
 */
export function isWhole(state: SliceState | undefined, { side, plain, incarnation }: ShardState, told: boolean): boolean {
  if (state === undefined || side === undefined || state.stated === 0 || state.stated !== incarnation) return false;
  return side === 'local' ? plain || told : state.edge !== '' && told;
}

/** A plain writer states nothing, so that what it wrote is taken for everything once it is quiet. */
function statedBy({ stated, synced }: SliceState, shard: ShardState | undefined): SliceStatus['stated'] {
  if (shard !== undefined && stated !== 0 && stated === shard.incarnation) return shard.plain ? 'assumed' : 'current';
  return synced ? 'earlier' : 'never';
}

function inOrder(slices: readonly SliceState[]): readonly SliceState[] {
  return slices
    .map((state) => {
      const { group, resource, identity } = state.slice.resource;
      return { state, type: `${group}/${resource}:${identity}` };
    })
    .toSorted((a, b) => (a.type === b.type ? 0 : a.type < b.type ? -1 : 1))
    .map(({ state }) => state);
}

function age(sinceMs: number, nowMs: number): number {
  return Math.max(0, nowMs - sinceMs);
}
