/**
 * Removes what a shard has left here of a logical cluster that migrated to another one. kcp deletes that on the former shard in etcd itself, and its replication controller
 * does not see it go. So the copies would stay for good, and each name be found on two shards.
 *
 *   LogicalCluster of C from A, marked as migrating by M          ┐
 *   M, a LogicalClusterMigration of C to B, which one shard has   ├ for `staysMs` ──▶ what A has of C is deleted, the LogicalCluster last
 *   the same LogicalCluster, by its uid, from B, without the mark ┘
 *
 * kcp takes the mark away on the new shard after it has deleted everything on the former one.
 *
 * MIGRATED-1 Only of a plain writer that writes here: an agent sees its objects go, and what comes over a link goes where that comes from.
 * MIGRATED-2 Never of `root` and of `system:…`, which decide about others and do not migrate.
 * MIGRATED-3 What is written meanwhile stays, and what has not been deleted by then with it.
 * MIGRATED-4 Nobody is believed about others: where the former shard has marked its logical cluster, its mark says by which migration, that says where to, and only
 *    the shard that it names can end it.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Log } from '../diagnostics/log.js';
import { logicalClusterType, parseClusterName, rootCluster, type ClusterName } from '../domain/cluster.js';
import type { Commit } from '../domain/change.js';
import { annotationsOf } from '../domain/object-metadata.js';
import type { Body, StoredObject } from '../domain/object.js';
import type { Clock, Subscription } from '../domain/ports.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { Commits, Objects, Revisions, Writer } from '../domain/store-port.js';
import { textAt } from '../domain/text-at.js';
import { jsonValue } from '../json/json-value.js';
import type { PublishedState } from '../domain/published-state.js';

/** `isLeader`: of the servers of this store one removes what nobody asks for. */
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
/** Its value is the logical cluster and the name of a LogicalClusterMigration. */
const mark = 'internal.kcp.io/migrating';
const markPattern = /^([^:]+):([^:]+)$/;
const uidAtShard = 'cache.kcp.io/original-resource-UID';
const staysMs = 60_000;
const lookIntervalMs = 5_000;

export class MigratedClusters {
  readonly #parts: MigratedClustersParts;
  readonly #subscription: Subscription;
  /** Logical clusters that have a mark, and since when a shard is seen to have left one. */
  readonly #marked = new Map<ClusterName, Map<ShardName, number>>();
  #cancel: () => void;
  #isClosed = false;

  constructor(parts: MigratedClustersParts) {
    this.#parts = parts;
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
    this.#cancel = this.#lookLater(() => this.#readAll());
  }

  close(): void {
    this.#isClosed = true;
    this.#subscription.cancel();
    this.#cancel();
  }

  #follow({ changes }: Commit): void {
    for (const change of changes) {
      const { group, resource } = change.key.resource;
      if (resource === logicalClusterType.resource && group === logicalClusterType.group && change.kind === 'put')
        this.#note(change.object);
    }
  }

  #note({ key: { cluster }, body }: StoredObject): void {
    if (cluster === rootCluster || cluster.startsWith('system:') || this.#marked.has(cluster)) return;
    if (isMarked(body)) this.#marked.set(cluster, new Map());
  }

  #lookLater(look = () => this.#look()): () => void {
    return this.#parts.clock.after(lookIntervalMs, () => {
      const looked = look().catch((error: unknown) => this.#parts.log.error('cluster.removal-failed', { error }));
      void looked.then(() => {
        if (!this.#isClosed) this.#cancel = this.#lookLater();
      });
    });
  }

  /** Finds what was marked before this start. */
  async #readAll(): Promise<void> {
    const { objects, revisions } = this.#parts;
    const everywhere = { ...logicalClusterType, shard: '*', cluster: '*' } as const;
    for await (const page of snapshotPages(objects.snapshot(everywhere, revisions.published))) {
      for (const object of page) this.#note(object);
      if (this.#isClosed) return;
      await turn();
    }
  }

  /** What fails is tried again at the next look. */
  async #look(): Promise<void> {
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
      if (removed > 0) log.info('cluster.left-removed', { cluster, shard, to: now.key.shard, objects: removed });
    }
  }

  /** Where the LogicalClusterMigration that the mark names is to bring the logical cluster. */
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

  /** How many objects. */
  async #remove(shard: ShardName, cluster: ClusterName): Promise<number> {
    const { objects, revisions, known } = this.#parts;
    const types = [...known.slicesOf(shard)]
      .map(({ slice }) => slice.resource)
      .toSorted((one, other) => Number(isLast(one)) - Number(isLast(other)));
    let removed = 0;
    for (const type of types)
      for await (const page of snapshotPages(objects.snapshot({ ...type, shard, cluster }, revisions.published))) {
        const deleted = await Promise.all(page.map((object) => this.#delete(object)));
        removed += deleted.filter((each) => each).length;
        if (this.#isClosed || !this.#isPlain(shard) || deleted.some((each) => !each)) return removed;
      }
    return removed;
  }

  /** Whether it is gone. */
  async #delete({ key, revision }: StoredObject): Promise<boolean> {
    const outcome = await this.#parts.writer.submit({ kind: 'delete', key, expect: revision });
    return outcome.kind === 'written' || (outcome.kind === 'refused' && outcome.why === 'absent');
  }
}

/** Few are, and the bytes tell that sooner than the annotations. */
function isMarked(body: Body): boolean {
  return Buffer.from(body.bytes.buffer, body.bytes.byteOffset, body.bytes.length).includes(mark) && annotationsOf(body).has(mark);
}

function uidOf({ body }: StoredObject): string {
  return annotationsOf(body).get(uidAtShard) ?? '';
}

/** As long as it is there, what is left to be removed is found. */
function isLast({ group, resource }: Resource): boolean {
  return group === logicalClusterType.group && resource === logicalClusterType.resource;
}
