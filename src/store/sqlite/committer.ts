/**
 * The only writer (D3): one transaction per batch, with the decision on each mutation inside it, in queue order.
 *
 * I2 Revisions are gapless: each written change takes the last one + 1, in queue order.
 * I3 A batch is durable, and the witness knows it, before anyone hears of it. A batch that fails leaves no trace.
 * I4 `objects` names, for every key, the newest put in `changes`; a body stands there once.
 */
import assert from 'node:assert/strict';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Key } from '../../domain/key.js';
import { decide, type Mutation } from '../../domain/mutation.js';
import type { Revision } from '../../domain/revision.js';
import type { Committed, Decided, Restated } from './committer-messages.js';
import type { Connection } from './database.js';
import type { Witness } from './witness.js';

export const put = 1;
export const tombstone = 2;

type Place = [resource: number, shard: string, cluster: string, namespace: string, name: string];

export class Committer {
  readonly #database: Connection;
  readonly #witness: Witness;
  readonly #momentIntervalMs: number;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #resources = new Map<string, number>();
  #revision: Revision;
  #logBytes: number;
  #momentMs: number;

  constructor(database: Connection, witness: Witness, momentIntervalMs: number) {
    this.#database = database;
    this.#witness = witness;
    this.#momentIntervalMs = momentIntervalMs;
    this.#statements = prepare(database);
    this.#revision = readMeta(database, 'revision');
    this.#logBytes = readMeta(database, 'log_bytes');
    this.#momentMs = this.#statements.lastMoment.get() ?? 0;
  }

  /** Throws what SQLite throws when the disk takes nothing; the state is then as before. */
  commit(mutations: readonly Mutation[], nowMs: number): Omit<Committed, 'kind' | 'elapsedMs'> {
    const before = { revision: this.#revision, logBytes: this.#logBytes, momentMs: this.#momentMs };
    const decided: Decided[] = [];
    const restated: Restated[] = [];
    const movedPaths: string[] = [];
    try {
      this.#database
        .transaction(() => {
          for (const mutation of mutations) decided.push(this.#apply(mutation, restated, movedPaths));
          if (this.#revision === before.revision) return;
          this.#noteMoment(nowMs);
          this.#statements.setMeta.run(this.#revision, 'revision');
          this.#statements.setMeta.run(this.#logBytes, 'log_bytes');
        })
        .immediate();
    } catch (error) {
      this.#revision = before.revision;
      this.#logBytes = before.logBytes;
      this.#momentMs = before.momentMs;
      this.#resources.clear();
      throw error;
    }
    const written = decided.filter(({ kind }) => kind === 'written').length + restated.length;
    assert.equal(this.#revision, before.revision + written, 'I2');
    if (written > 0) this.#witness.testify(this.#revision);
    return { revision: this.#revision, decided, restated, movedPaths, logBytes: this.#logBytes };
  }

  /** A compaction has taken that many bytes out of the log, and has noted so itself. */
  shrink(bytes: number): number {
    this.#logBytes -= bytes;
    return this.#logBytes;
  }

  /** Writes something that means nothing. Throws what SQLite throws when the disk takes nothing. */
  probe(): void {
    this.#statements.countProbe.run();
  }

  #apply(mutation: Mutation, restated: Restated[], movedPaths: string[]): Decided {
    const place = this.#place(mutation.key);
    const current = this.#statements.current.get(...place);
    const verdict = decide(mutation, current);
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    const revision = this.#next();
    if (mutation.kind === 'put') this.#put(mutation, place, revision, current ?? 0, movedPaths);
    else this.#delete(mutation.key, place, revision, current ?? 0, restated, movedPaths);
    return { kind: 'written', revision, replaced: current ?? 0 };
  }

  #put(mutation: Mutation & { kind: 'put' }, place: Place, revision: Revision, replaced: Revision, movedPaths: string[]): void {
    const { bytes, version, marks } = mutation.body;
    const [resource, ...names] = place;
    this.#statements.appendPut.run(
      revision,
      resource,
      replaced,
      ...names,
      version,
      marks.metadataStart,
      marks.metadataEnd,
      marks.annotationsAt,
      marks.revisionAt,
      bytes,
    );
    this.#statements.setCurrent.run(...place, revision);
    this.#logBytes += bytes.length;
    if (mutation.path !== undefined) this.#movePath(mutation.key, mutation.path, movedPaths);
  }

  #delete(key: Key, place: Place, revision: Revision, replaced: Revision, restated: Restated[], movedPaths: string[]): void {
    const [resource, ...names] = place;
    this.#statements.appendDelete.run(revision, resource, replaced, ...names);
    this.#statements.removeCurrent.run(...place);
    this.#restateSurvivor(key, resource, restated);
    if (this.#statements.anyOfCluster.get(key.cluster, key.shard) === undefined) {
      const path = this.#statements.path.get(key.shard, key.cluster);
      if (path !== undefined) movedPaths.push(path);
      this.#statements.removePath.run(key.shard, key.cluster);
    }
  }

  /** Informers' keys have no shard (R21): when a namesake elsewhere survives, it is stated again so that they end with it (D4). */
  #restateSurvivor(key: Key, resource: number, restated: Restated[]): void {
    const survivor = this.#statements.survivor.get(key.cluster, resource, key.namespace, key.name);
    if (survivor === undefined) return;
    const revision = this.#next();
    this.#logBytes += this.#statements.restate.get(revision, survivor.revision) ?? 0;
    this.#statements.setCurrent.run(resource, survivor.shard, key.cluster, key.namespace, key.name, revision);
    restated.push({ key: { ...key, shard: survivor.shard as Key['shard'] }, revision, replaced: survivor.revision });
  }

  #movePath(key: Key, path: string, movedPaths: string[]): void {
    const before = this.#statements.path.get(key.shard, key.cluster);
    if (before === path) return;
    if (before !== undefined) movedPaths.push(before);
    movedPaths.push(path);
    this.#statements.setPath.run(key.shard, key.cluster, path);
  }

  #noteMoment(nowMs: number): void {
    if (nowMs - this.#momentMs < this.#momentIntervalMs && nowMs >= this.#momentMs) return;
    this.#statements.setMoment.run(this.#revision, nowMs);
    this.#momentMs = nowMs;
  }

  #next(): Revision {
    this.#revision += 1;
    return this.#revision;
  }

  #place(key: Key): Place {
    return [this.#resource(key.resource), key.shard, key.cluster, key.namespace, key.name];
  }

  #resource(resource: Resource): number {
    const text = formatResource(resource);
    const known = this.#resources.get(text);
    if (known !== undefined) return known;
    this.#statements.addResource.run(resource.group, resource.resource, resource.identity);
    const id = this.#statements.resource.get(resource.group, resource.resource, resource.identity);
    assert(id !== undefined, 'a resource that was just added is there');
    this.#resources.set(text, id);
    return id;
  }
}

export function readMeta(database: Connection, name: string): number {
  return Number(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = ?`).pluck().get(name));
}

function prepare(database: Connection) {
  const pluck = <Parameters extends unknown[], Result>(sql: string) => database.prepare<Parameters, Result>(sql).pluck();
  return {
    current: pluck<Place, Revision>(
      /*sql*/ `SELECT revision FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
    ),
    appendPut:
      database.prepare(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body)
               VALUES (?, ?, ${put}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    appendDelete:
      database.prepare(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body)
               VALUES (?, ?, ${tombstone}, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, NULL)`),
    restate: pluck<
      [Revision, Revision],
      number
    >(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body)
               SELECT ?, resource, kind, revision, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body
               FROM changes WHERE revision = ? RETURNING length(body)`),
    setCurrent:
      database.prepare(/*sql*/ `INSERT INTO objects (resource, shard, cluster, namespace, name, revision) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (resource, shard, cluster, namespace, name) DO UPDATE SET revision = excluded.revision`),
    removeCurrent: database.prepare<Place>(
      /*sql*/ `DELETE FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
    ),
    survivor: database.prepare<
      [string, number, string, string],
      { shard: string; revision: Revision }
    >(/*sql*/ `SELECT shard, revision FROM objects INDEXED BY objects_by_cluster
               WHERE cluster = ? AND resource = ? AND namespace = ? AND name = ? ORDER BY revision DESC LIMIT 1`),
    anyOfCluster: pluck<[string, string], number>(
      /*sql*/ `SELECT 1 FROM objects INDEXED BY objects_by_cluster WHERE cluster = ? AND shard = ? LIMIT 1`,
    ),
    path: pluck<[string, string], string>(/*sql*/ `SELECT path FROM paths WHERE shard = ? AND cluster = ?`),
    setPath: database.prepare(
      /*sql*/ `INSERT INTO paths (shard, cluster, path) VALUES (?, ?, ?) ON CONFLICT (shard, cluster) DO UPDATE SET path = excluded.path`,
    ),
    removePath: database.prepare(/*sql*/ `DELETE FROM paths WHERE shard = ? AND cluster = ?`),
    addResource: database.prepare(/*sql*/ `INSERT INTO resources (api_group, resource, identity) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`),
    resource: pluck<[string, string, string], number>(
      /*sql*/ `SELECT id FROM resources WHERE api_group = ? AND resource = ? AND identity = ?`,
    ),
    setMeta: database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`),
    // A page that would not change is not written, hence the count.
    countProbe: database.prepare(
      /*sql*/ `INSERT INTO meta (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1`,
    ),
    setMoment: database.prepare(
      /*sql*/ `INSERT INTO moments (revision, at_ms) VALUES (?, ?) ON CONFLICT (revision) DO UPDATE SET at_ms = excluded.at_ms`,
    ),
    lastMoment: pluck<[], number>(/*sql*/ `SELECT at_ms FROM moments ORDER BY revision DESC LIMIT 1`),
  };
}
