/**
 * Takes shards out of the cache: by an operator's word, by the deletion of their Shard object, or because they stayed away.
 *
 *   asked for by name             removed: a tombstone keeps its old processes out; objects leave with one DELETED each
 *   its Shard object was deleted  removed likewise, once nobody has pushed for it during `deletedGraceMs` (if configured)
 *   away for `awayMaxMs`          emptied, without a tombstone: who comes back states it in full (if configured)
 *
 * L1 What a full statement does not name, or what a removal takes along, is no word about a shard: only a delete of the Shard
 *    object by name is. L2 A shard whose Shard object is there again is not removed.
 */
import type { Log } from '../diagnostics/log.js';
import { Refused } from '../domain/errors.js';
import type { Commit } from '../domain/change.js';
import type { Clock, Commits, PushLane, Pushes, Shards, Subscription } from '../domain/ports.js';
import type { PushOutcome, SliceState } from '../domain/push.js';
import { parseShardName, type ShardName } from '../domain/shard.js';
import type { PushSessions } from './push-sessions.js';

export type ShardRemovalParts = Readonly<{
  pushes: Pushes;
  commits: Commits;
  sessions: PushSessions;
  clock: Clock;
  log: Log;
}>;

/** Undefined: never. */
export type ShardRemovalPolicy = Readonly<{ awayMaxMs: number | undefined; deletedGraceMs: number | undefined }>;

const shardObjects = { group: 'core.kcp.io', resource: 'shards' } as const;
/** How often shards are looked at that stay away. */
const lookIntervalMaxMs = 60_000;
const lookIntervalMinMs = 1_000;

export class ShardRemoval implements Shards {
  readonly #parts: ShardRemovalParts;
  readonly #policy: ShardRemovalPolicy;
  readonly #lane: PushLane;
  readonly #subscription: Subscription;
  /** Shards whose Shard object was deleted, and when. */
  readonly #deleted = new Map<ShardName, number>();
  #cancelLook: () => void;

  constructor(parts: ShardRemovalParts, policy: ShardRemovalPolicy) {
    this.#parts = parts;
    this.#policy = policy;
    this.#lane = parts.pushes.lane();
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
    this.#cancelLook = this.#lookLater();
  }

  /** Removes a shard for good. Undefined when nothing is known of it. */
  async remove(shard: ShardName): Promise<{ removed: number } | undefined> {
    return (await this.#isKnown(shard)) ? { removed: await this.#clear(shard, { fence: true, why: 'asked' }) } : undefined;
  }

  close(): void {
    this.#subscription.cancel();
    this.#cancelLook();
  }

  async #isKnown(shard: ShardName): Promise<boolean> {
    const { pushes } = this.#parts;
    const [shards, slices] = await Promise.all([pushes.shards(), pushes.slices()]);
    return shards.some((each) => each.shard === shard) || slices.some(({ slice }) => slice.shard === shard);
  }

  async #clear(shard: ShardName, { fence, why }: Readonly<{ fence: boolean; why: 'asked' | 'deleted' | 'away' }>): Promise<number> {
    const [outcome] = await this.#lane.push([{ kind: 'clear', shard, fence, nowMs: this.#parts.clock.now() }]);
    if (fence) this.#parts.sessions.evict(shard, 'fenced', `the shard ${shard} was removed`);
    const removed = sweptBy(outcome);
    this.#parts.log.info(fence ? 'shard.removed' : 'shard.emptied', { shard, why, objects: removed });
    return removed;
  }

  #follow({ changes, unstated }: Commit): void {
    if (this.#policy.deletedGraceMs === undefined) return;
    for (const change of changes) {
      const { resource, name } = change.key;
      if (resource.resource !== shardObjects.resource || resource.group !== shardObjects.group) continue;
      const shard = parseShardName(name);
      if (shard === undefined) continue;
      if (change.kind === 'put') this.#deleted.delete(shard);
      else if (!unstated.has(change.revision)) this.#deleted.set(shard, this.#parts.clock.now());
    }
  }

  #lookLater(): () => void {
    const { awayMaxMs, deletedGraceMs } = this.#policy;
    const shortest = Math.min(awayMaxMs ?? Infinity, deletedGraceMs ?? Infinity);
    if (shortest === Infinity) return () => {};
    const intervalMs = Math.min(Math.max(shortest / 4, lookIntervalMinMs), lookIntervalMaxMs);
    return this.#parts.clock.after(intervalMs, () => {
      this.#look()
        .catch((error: unknown) => this.#parts.log.error('shard.removal-failed', { error }))
        .finally(() => (this.#cancelLook = this.#lookLater()));
    });
  }

  async #look(): Promise<void> {
    const nowMs = this.#parts.clock.now();
    const { awayMaxMs, deletedGraceMs } = this.#policy;
    const slices = await this.#parts.pushes.slices();
    for (const [shard, deletedMs] of this.#deleted) {
      if (deletedGraceMs === undefined || nowMs - deletedMs < deletedGraceMs) continue;
      if (!this.#isAway(shard, deletedGraceMs, nowMs) || nowMs - lastChange(shard, slices) < deletedGraceMs) continue;
      this.#deleted.delete(shard);
      await this.#clear(shard, { fence: true, why: 'deleted' });
    }
    if (awayMaxMs === undefined) return;
    const holding = new Set(slices.filter(({ objects }) => objects > 0).map(({ slice }) => slice.shard));
    for (const { shard, removed } of await this.#parts.pushes.shards()) {
      if (!removed && holding.has(shard) && this.#isAway(shard, awayMaxMs, nowMs)) await this.#clear(shard, { fence: false, why: 'away' });
    }
  }

  #isAway(shard: ShardName, ms: number, nowMs: number): boolean {
    const { peer, sinceMs } = this.#parts.sessions.presence(shard);
    return peer === undefined && nowMs - sinceMs >= ms;
  }
}

/** Plain HTTP has no session that could be away: there it is the last write that counts. */
function lastChange(shard: ShardName, slices: readonly SliceState[]): number {
  return slices.reduce((last, { slice, changedMs }) => (slice.shard === shard ? Math.max(last, changedMs) : last), 0);
}

function sweptBy(outcome: PushOutcome | undefined): number {
  switch (outcome?.kind) {
    case 'swept':
      return outcome.removed;
    case 'unavailable':
      throw new Refused(outcome.refusal);
    default:
      throw new Error(`clearing a shard ended as ${outcome?.kind}`);
  }
}
