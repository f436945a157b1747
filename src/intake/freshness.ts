/**
 * How fresh each shard's part of this cache is (D10), put together when someone asks: what the store holds, who pushes, and
 * what the pusher said last of itself. A cache says what it knows; what nobody tells is null, never guessed.
 *
 * A shard that never claimed is written over plain HTTP, which tells no end: after `quietMs` without a write its slices are
 * taken as stated, and called so (`assumed`).
 */
import type { Clock, Freshness as FreshnessPort, Pushes, Revisions, StoreIdentity } from '../domain/ports.js';
import type { ShardState, SliceState } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice } from '../domain/slice.js';
import type { ShardConnection, ShardStatus, SliceStatus, StatusReport } from '../domain/status.js';
import type { Presence, PushSessions } from './push-sessions.js';

export type FreshnessParts = Readonly<{
  store: Pushes & StoreIdentity & Pick<Revisions, 'published' | 'format'>;
  sessions: PushSessions;
  clock: Clock;
  version: string;
  isReady: () => boolean;
}>;

/** How long plain HTTP must be quiet until what it wrote counts as everything. */
const quietMs = 30_000;

export class Freshness implements FreshnessPort {
  readonly #parts: FreshnessParts;

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
  }

  async report(): Promise<StatusReport> {
    const { store, clock, version, isReady } = this.#parts;
    const [shards, slices] = await Promise.all([store.shards(), store.slices()]);
    const claimed = new Map(shards.map((state) => [state.shard, state]));
    const byShard = new Map<ShardName, SliceState[]>(shards.map(({ shard }) => [shard, []]));
    for (const state of slices) {
      const known = byShard.get(state.slice.shard);
      if (known === undefined) byShard.set(state.slice.shard, [state]);
      else known.push(state);
    }
    const nowMs = clock.now();
    const names = [...byShard.keys()].toSorted();
    return {
      cache: { id: store.cacheId, version, epoch: store.epoch, resourceVersion: store.format(store.published), ready: isReady() },
      shards: names.map((shard) =>
        shardStatus(shard, claimed.get(shard), byShard.get(shard) ?? [], this.#parts.sessions.presence(shard), nowMs),
      ),
    };
  }
}

function shardStatus(
  shard: ShardName,
  claimed: ShardState | undefined,
  slices: readonly SliceState[],
  presence: Presence,
  nowMs: number,
): ShardStatus {
  const status = { shard, removed: claimed?.removed ?? false, connection: connectionOf(claimed, presence, nowMs) };
  const told = slices.map((state) => sliceStatus(state, claimed, presence, nowMs)).toSorted(byType);
  return claimed === undefined ? { ...status, slices: told } : { ...status, incarnation: claimed.incarnation, slices: told };
}

function connectionOf(claimed: ShardState | undefined, { peer, sinceMs }: Presence, nowMs: number): ShardConnection {
  if (claimed === undefined) return { kind: 'plain' };
  const forMs = Math.max(0, nowMs - sinceMs);
  return peer === undefined ? { kind: 'away', forMs } : { kind: 'connected', forMs, peer };
}

function sliceStatus(state: SliceState, claimed: ShardState | undefined, presence: Presence, nowMs: number): SliceStatus {
  const { slice, objects, bytes, changedMs } = state;
  const changedAgoMs = changedMs === 0 ? null : Math.max(0, nowMs - changedMs);
  const isQuiet = changedAgoMs === null || changedAgoMs >= quietMs;
  const told = presence.told.get(formatSlice(slice));
  return {
    ...slice.resource,
    synced: claimed === undefined ? isQuiet : state.synced,
    stated: claimed === undefined ? (isQuiet ? 'assumed' : 'never') : statedBy(state, claimed),
    objects,
    bytes,
    changedAgoMs,
    lagMs: lagOf(presence, told?.lagMs, nowMs),
    sourceConnected: presence.peer === undefined ? null : (told?.connected ?? null),
  };
}

function statedBy({ stated, synced }: SliceState, { incarnation }: ShardState): SliceStatus['stated'] {
  if (stated === incarnation && stated !== 0) return 'current';
  return synced ? 'earlier' : 'never';
}

/** While the pusher is away, what it would tell grows older by the time it is. */
function lagOf({ peer, sinceMs }: Presence, toldMs: number | undefined, nowMs: number): number | null {
  if (toldMs === undefined) return null;
  return peer === undefined ? toldMs + Math.max(0, nowMs - sinceMs) : toldMs;
}

function byType(a: SliceStatus, b: SliceStatus): number {
  const [left, right] = [a, b].map(({ group, resource, identity }) => `${group}/${resource}:${identity}`);
  return left === right ? 0 : (left ?? '') < (right ?? '') ? -1 : 1;
}
