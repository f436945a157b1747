/**
 * Removes the copies that a shard has left here of a logical cluster that migrated to another
 * shard. kcp deletes the former shard's objects directly in etcd, so its replication controller
 * sees no deletion. Without this removal, the copies would stay for good, and each name would exist
 * on two shards.
 *
 *   LogicalCluster of C from A, marked as migrating by M         ┐
 *   M, a LogicalClusterMigration of C to B, on exactly one shard ├ for `staysMs` ──▶ delete what A
 *   the same LogicalCluster, by its uid, from B, without a mark  ┘                   has of C
 *
 * The LogicalCluster is deleted last. kcp removes the mark on the new shard after it has deleted
 * everything on the former one.
 *
 * MIGRATED-1 This applies only to a shard that a plain writer writes here. An agent sees the
 *   deletes itself. Objects from a link are deleted at the cache that the shard is written to.
 * MIGRATED-2 It never applies to `root` and `system:…`. These do not migrate, and their objects
 *   govern other logical clusters.
 * MIGRATED-3 A write during the removal stops it. The written object stays, and so do all objects
 *   that are not deleted yet.
 * MIGRATED-4 One shard's word about another is never enough. The mark of the former shard names the
 *   migration, the migration names the destination, and only the destination can end it.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Log } from '../../diagnostics/log.js';
import { logicalClusterType, parseClusterName, rootCluster, type ClusterName } from '../../domain/cluster.js';
import type { Commit } from '../../domain/change.js';
import { annotationsOf } from '../../domain/object-metadata.js';
import type { Body, StoredObject } from '../../domain/object.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { Commits, Objects, Revisions, Writer } from '../../domain/store-port.js';
import { textAt } from '../../domain/base/members.js';
import { jsonValue } from '../../json/json-value.js';
import type { PublishedState } from '../../domain/published-state.js';

/** `isLeader`: only the leading server of a store makes removals that no operator requested. */
export type MigratedClustersParts = Readonly<{
  objects: Pick<Objects, 'find' | 'snapshot'>;
  revisions: Pick<Revisions, 'published'>;
  commits: Commits;
  writer: Writer;
  known: Pick<PublishedState, 'shard' | 'slicesOf'>;
  isLeader: () => boolean;
  clock: Clock;
  log: Log;
}>;

const migrations: Resource = { group: 'migration.kcp.io', resource: 'logicalclustermigrations', identity: '' };
/** An annotation. Its value names a logical cluster and a LogicalClusterMigration in it. */
const mark = 'internal.kcp.io/migrating';
const markPattern = /^([^:]+):([^:]+)$/;
const uidAtShard = 'cache.kcp.io/original-resource-UID';
const staysMs = 60_000;
const checkIntervalMs = 5_000;

export class MigratedClusters {
  readonly #parts: MigratedClustersParts;
  readonly #subscription: Subscription;
  /**
   * Keyed by marked logical cluster, then by shard: when this server first saw that the logical
   * cluster had left the shard.
   */
  readonly #marked = new Map<ClusterName, Map<ShardName, number>>();
  #cancel: () => void;
  #isClosed = false;

  constructor(parts: MigratedClustersParts) {
    this.#parts = parts;
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
    this.#cancel = this.#checkLater(() => this.#readAll());
  }

  close(): void {
    this.#isClosed = true;
    this.#subscription.cancel();
    this.#cancel();
  }

  #follow({ changes }: Commit): void {
    for (const change of changes) {
      if (change.kind === 'put' && isLogicalCluster(change.key.resource)) this.#record(change.object);
    }
  }

  #record({ key: { cluster }, body }: StoredObject): void {
    if (cluster === rootCluster || cluster.startsWith('system:') || this.#marked.has(cluster)) return;
    if (isMarked(body)) this.#marked.set(cluster, new Map());
  }

  #checkLater(check = () => this.#checkAll()): () => void {
    return this.#parts.clock.after(checkIntervalMs, () => {
      const looked = check().catch((error: unknown) => this.#parts.log.error('cluster.removal-failed', { error }));
      void looked.then(() => {
        if (!this.#isClosed) this.#cancel = this.#checkLater();
      });
    });
  }

  /** Finds marks that were stored before this start. */
  async #readAll(): Promise<void> {
    const { objects, revisions } = this.#parts;
    const everywhere = { ...logicalClusterType, shard: '*', cluster: '*' } as const;
    for await (const page of snapshotPages(objects.snapshot(everywhere, revisions.published))) {
      for (const object of page) this.#record(object);
      if (this.#isClosed) return;
      await turn();
    }
  }

  /** The next check retries failed removals. */
  async #checkAll(): Promise<void> {
    if (this.#parts.isLeader()) for (const [cluster, since] of this.#marked) await this.#check(cluster, since);
  }

  async #check(cluster: ClusterName, since: Map<ShardName, number>): Promise<void> {
    const { objects, clock, log } = this.#parts;
    const found = await objects.find({ ...logicalClusterType, shard: '*', cluster, namespace: '', name: 'cluster' });
    const marked = found.filter(({ body }) => isMarked(body));
    if (marked.length === 0) this.#marked.delete(cluster);
    for (const shard of since.keys()) if (!marked.some(({ key }) => key.shard === shard)) since.delete(shard);
    for (const left of marked) {
      const { shard } = left.key;
      const to = this.#isPlain(shard) ? await this.#destinationOf(left) : undefined;
      const now = found.find(
        (other) => other.key.shard === to && !marked.includes(other) && uidOf(left) !== '' && uidOf(other) === uidOf(left),
      );
      if (now === undefined) {
        since.delete(shard);
        continue;
      }
      const nowMs = clock.now();
      const sinceMs = since.get(shard) ?? nowMs;
      since.set(shard, sinceMs);
      if (nowMs - sinceMs < staysMs) continue;
      const removed = await this.#remove(shard, cluster);
      if (removed > 0) log.info('cluster.copies-removed', { cluster, shard, to: now.key.shard, objects: removed });
    }
  }

  async #destinationOf({ key: { cluster }, body }: StoredObject): Promise<string | undefined> {
    const [, parent = '', name = ''] = markPattern.exec(annotationsOf(body).get(mark) ?? '') ?? [];
    const place = parseClusterName(parent);
    if (place === undefined) return undefined;
    const [migration, ...others] = await this.#parts.objects.find({ ...migrations, shard: '*', cluster: place, namespace: '', name });
    if (migration === undefined || others.length > 0) return undefined;
    const object = jsonValue(new TextDecoder().decode(migration.body.bytes));
    return textAt(object, 'spec', 'logicalCluster') === cluster ? textAt(object, 'spec', 'destinationShard') : undefined;
  }

  #isPlain(shard: ShardName): boolean {
    const state = this.#parts.known.shard(shard);
    return state?.plain === true && state.via === 'local';
  }

  async #remove(shard: ShardName, cluster: ClusterName): Promise<number> {
    const { objects, revisions, known } = this.#parts;
    // The LogicalCluster is deleted last, because a later check finds the remaining objects only
    // while it is stored.
    const types = [...known.slicesOf(shard)]
      .map(({ slice }) => slice.resource)
      .toSorted((one, other) => Number(isLogicalCluster(one)) - Number(isLogicalCluster(other)));
    let removed = 0;
    for (const type of types)
      for await (const page of snapshotPages(objects.snapshot({ ...type, shard, cluster }, revisions.published))) {
        const deleted = await Promise.all(page.map((object) => this.#delete(object)));
        removed += deleted.filter((each) => each).length;
        if (this.#isClosed || !this.#isPlain(shard) || deleted.some((each) => !each)) return removed;
      }
    return removed;
  }

  async #delete({ key, revision }: StoredObject): Promise<boolean> {
    const outcome = await this.#parts.writer.submit({ kind: 'delete', key, expect: revision });
    return outcome.kind === 'written' || (outcome.kind === 'refused' && outcome.why === 'absent');
  }
}

/**
 * Searches the bytes first, because few objects are marked and parsing the annotations takes
 * longer.
 */
function isMarked(body: Body): boolean {
  return Buffer.from(body.bytes.buffer, body.bytes.byteOffset, body.bytes.length).includes(mark) && annotationsOf(body).has(mark);
}

function uidOf({ body }: StoredObject): string {
  return annotationsOf(body).get(uidAtShard) ?? '';
}

function isLogicalCluster({ group, resource }: Resource): boolean {
  return group === logicalClusterType.group && resource === logicalClusterType.resource;
}
