/**
 * Removes shards from the cache:
 *
 *   an operator names it          removed: a tombstone fences its old processes, and each object
 *                                 causes one DELETED
 *   its Shard object was deleted  removed likewise, once nobody has pushed it for `deletedGraceMs`
 *                                 (if configured)
 *   away for `awayMaxMs`          emptied, without a tombstone: a pusher that reconnects syncs it
 *                                 in full (if configured)
 *
 * L1 Only a DELETE of the Shard object itself proves that its shard is gone. A Shard object that a
 *    full sync omits, or that another removal deletes, proves nothing.
 * L2 While the Shard object of a shard exists, no earlier DELETE of that object removes the shard.
 * L3 Whoever claims a shard during its removal keeps it.
 * L4 Only the root shard decides about other shards. kcp keeps all Shard objects in its logical
 *    cluster `root`, which is on the shard named `root` alone. Shard objects of other shards
 *    neither remove nor keep a shard.
 */
import type { Log } from '../../diagnostics/log.js';
import { Refused } from '../../domain/errors.js';
import type { Commit } from '../../domain/change.js';
import { rootCluster } from '../../domain/cluster.js';
import type { Clock, Shards, Subscription } from '../../domain/ports.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { Commits, Objects, PushLane, Writer, Revisions } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardState } from '../../domain/claim.js';
import { parseShardName, rootShard, type ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import type { SeenElsewhere } from '../writes/plain-writes.js';
import type { PushSessions } from '../push/push-sessions.js';

export type ShardRemovalParts = Readonly<{
  objects: Objects;
  revisions: Pick<Revisions, 'published' | 'reachNewest'>;
  writer: Pick<Writer, 'lane'>;
  state: PublishedState;
  commits: Commits;
  sessions: PushSessions;
  seenMs: SeenElsewhere;
  lastWriteMs: (shard: ShardName) => number;
  isLinkUp: (neighbour: Neighbour) => boolean;
  /** Only the leading server of a store makes removals that no operator requested. */
  isLeader: () => boolean;
  clock: Clock;
  log: Log;
}>;

/** An undefined limit disables that removal. */
export type ShardRemovalPolicy = Readonly<{ awayMaxMs: number | undefined; deletedGraceMs: number | undefined }>;

const shardObjects = { group: 'core.kcp.io', resource: 'shards' } as const;
/**
 * The interval between two checks is a quarter of the shorter limit of the policy, within these
 * bounds.
 */
const checkIntervalMaxMs = 60_000;
const checkIntervalMinMs = 1_000;

export class ShardRemoval implements Shards {
  readonly #parts: ShardRemovalParts;
  readonly #policy: ShardRemovalPolicy;
  readonly #lane: PushLane;
  readonly #subscriptions: readonly Subscription[];
  /**
   * When the Shard object of each shard was deleted. The entry stays until some server of the store
   * has removed the shard.
   */
  readonly #deleted = new Map<ShardName, number>();
  /**
   * The shard that this server is removing. Its entry in `#deleted` stays until all steps are done:
   * a step may fail after the store has published the shard as removed.
   */
  #removing: ShardName | undefined;
  #isClosed = false;
  #cancelCheck: () => void;

  constructor(parts: ShardRemovalParts, policy: ShardRemovalPolicy) {
    this.#parts = parts;
    this.#policy = policy;
    this.#lane = parts.writer.lane();
    this.#subscriptions = [
      parts.commits.subscribe((commit) => this.#follow(commit)),
      parts.state.follow(({ shards }) => {
        for (const { shard, removed } of shards) if (removed && shard !== this.#removing) this.#deleted.delete(shard);
      }),
    ];
    this.#cancelCheck = this.#checkLater();
  }

  /** Returns undefined if the cache does not know the shard. */
  async remove(shard: ShardName): Promise<{ removed: number } | undefined> {
    return this.#parts.state.hasName(shard) ? { removed: await this.#clear(shard, { fence: true, why: 'asked' }) } : undefined;
  }

  close(): void {
    this.#isClosed = true;
    for (const subscription of this.#subscriptions) subscription.cancel();
    this.#cancelCheck();
  }

  async #clear(
    shard: ShardName,
    { fence, why, through }: Readonly<{ fence: boolean; why: 'asked' | 'deleted' | 'away'; through?: Revision }>,
  ): Promise<number> {
    const { sessions, clock, log } = this.#parts;
    const [outcome] = await this.#lane.push([
      { kind: 'clear', shard, fence, nowMs: clock.wallMs(), ...(through !== undefined && { through }) },
    ]);
    if (outcome?.kind === 'unavailable') throw new Refused(outcome.refusal);
    if (outcome?.kind !== 'swept') throw new Error(`clearing a shard ended as ${outcome?.kind}`);
    const { removed } = outcome;
    const state = this.#parts.state.shard(shard);
    // With a fence, a pusher that has claimed the shard since keeps it. Without one, the shard's
    // pusher must resync, because the cache may have removed objects that the pusher has.
    if (!fence)
      sessions.evict(shard, { reason: 'unavailable', message: `the shard ${shard} was emptied, please sync it again`, retryAfterMs: 0 });
    else if (state !== undefined) sessions.evictOlder(shard, state, `the shard ${shard} was removed`);
    log.info(fence ? 'shard.removed' : 'shard.emptied', { shard, why, objects: removed });
    return removed;
  }

  #follow({ changes, swept }: Commit): void {
    if (this.#policy.deletedGraceMs === undefined) return;
    for (const change of changes) {
      const { shard: origin, resource, cluster, name } = change.key;
      if (resource.resource !== shardObjects.resource || resource.group !== shardObjects.group) continue;
      if (origin !== rootShard || cluster !== rootCluster) continue;
      const shard = parseShardName(name);
      if (shard === undefined) continue;
      if (change.kind === 'put') this.#deleted.delete(shard);
      else if (!swept.has(change.revision)) this.#deleted.set(shard, this.#parts.clock.now());
    }
  }

  #checkLater(): () => void {
    const { awayMaxMs, deletedGraceMs } = this.#policy;
    const shortest = Math.min(awayMaxMs ?? Infinity, deletedGraceMs ?? Infinity);
    if (shortest === Infinity || this.#isClosed) return () => {};
    const intervalMs = Math.min(Math.max(shortest / 4, checkIntervalMinMs), checkIntervalMaxMs);
    return this.#parts.clock.after(intervalMs, () => void this.#check().finally(() => (this.#cancelCheck = this.#checkLater())));
  }

  /** A failure on one shard does not stop the others. The next check tries that shard again. */
  async #check(): Promise<void> {
    if (!this.#parts.isLeader()) return;
    for (const shard of this.#deleted.keys()) await this.#attempt(shard, () => this.#removeDeleted(shard));
    if (this.#policy.awayMaxMs === undefined) return;
    for (const { shard, removed, via } of this.#parts.state.shards)
      if (!removed && this.#mayEmpty(via)) await this.#attempt(shard, () => this.#emptyAway(shard));
  }

  async #attempt(shard: ShardName, task: () => Promise<void>): Promise<void> {
    try {
      if (!this.#isClosed) await task();
    } catch (error) {
      this.#parts.log.error('shard.removal-failed', { shard, error });
    }
  }

  async #removeDeleted(shard: ShardName): Promise<void> {
    const deletedMs = this.#deleted.get(shard) ?? Infinity;
    const { deletedGraceMs = Infinity } = this.#policy;
    if (this.#parts.clock.now() - deletedMs < deletedGraceMs) return;
    // Another server of the same etcd may have stored the Shard object again.
    await this.#parts.revisions.reachNewest();
    if (!this.#isQuiet(shard, deletedGraceMs)) return;
    if (this.#parts.state.hasName(shard) && !(await this.#hasObject(shard))) {
      this.#removing = shard;
      await this.#clear(shard, { fence: true, why: 'deleted' }).finally(() => (this.#removing = undefined));
    }
    this.#deleted.delete(shard);
  }

  async #emptyAway(shard: ShardName): Promise<void> {
    const { awayMaxMs = Infinity } = this.#policy;
    const { state, revisions } = this.#parts;
    const holds = [...state.slicesOf(shard)].some(({ objects }) => objects > 0);
    if (!holds || !this.#isQuiet(shard, awayMaxMs)) return;
    // A plain writer may have resumed at another server of the same etcd. Later writes are above
    // `through`, and stay.
    await revisions.reachNewest();
    const through = revisions.published;
    if (this.#isQuiet(shard, awayMaxMs)) await this.#clear(shard, { fence: false, why: 'away', through });
  }

  /**
   * If the shard's via is the parent, or a child whose link is up, that neighbour empties the
   * shard, not this cache.
   */
  #mayEmpty(via: ShardState['via']): boolean {
    return via === undefined || via === 'local' || (via !== 'parent' && !this.#parts.isLinkUp(via));
  }

  async #hasObject(shard: ShardName): Promise<boolean> {
    const found = await this.#parts.objects.find({
      ...shardObjects,
      identity: '',
      shard: rootShard,
      cluster: rootCluster,
      namespace: '',
      name: shard,
    });
    return found.length > 0;
  }

  /**
   * Whether nobody has pushed the shard at any cache for `ms`, and nobody has written to it over
   * plain HTTP, which has no sessions.
   */
  #isQuiet(shard: ShardName, ms: number): boolean {
    const { clock, state, seenMs, lastWriteMs } = this.#parts;
    const nowMs = clock.now();
    const { peer, sinceMs } = this.#parts.sessions.presence(shard);
    if (peer !== undefined || nowMs - sinceMs < ms || nowMs - lastWriteMs(shard) < ms) return false;
    const via = state.shard(shard)?.via;
    if (via !== undefined && via !== 'local' && nowMs - seenMs(shard, via) < ms) return false;
    return [...state.slicesOf(shard)].every(({ changedMs }) => nowMs - changedMs >= ms);
  }
}
