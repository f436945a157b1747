/**
 * A store's life: its creation, its epochs, and its state at a start. `begin` runs before the
 * committer, under the lock. All other files here may rely on the database that `begin` leaves.
 *
 * Bound: one epoch for each start that was followed by writes, while these writes are stored or
 * remembered.
 */
import { failpoint } from '../../diagnostics/failpoint.js';
import type { Revision } from '../../domain/revision.js';
import type { Connection } from './database.js';
import { newCacheId, nextEpoch, nextNonce, type Epoch, type EpochParts } from '../epochs.js';

export type Life = Readonly<{
  /** Created with the store. A copy of the store has the same id. */
  cacheId: string;
  /** The last epoch begins with this life. */
  epochs: readonly Epoch[];
  revision: Revision;
  compacted: Revision;
  logBytes: number;
}>;

const unusedResourcesMax = 1_000;

export function begin(database: Connection, parts: EpochParts): Life {
  const life = database
    .transaction((): Life => {
      addMissingMeta(database, parts.random);
      fillOrigins(database);
      recordOpen(database, true);
      clampFutureTimes(database, parts.nowMs);
      const revision = readMeta(database, 'revision');
      const last = readEpochs(database).at(-1);
      dropEpochs(database, revision);
      dropResources(database);
      // In a store without epochs, resourceVersions had another form. The first epoch covers all
      // revisions of such a store, and the old resourceVersions are foreign.
      beginEpoch(database, last, last === undefined ? 1 : revision + 1, parts);
      failpoint('epoch.before');
      return {
        cacheId: readCacheId(database),
        epochs: readEpochs(database),
        revision,
        compacted: readMeta(database, 'compacted'),
        logBytes: readMeta(database, 'log_bytes'),
      };
    })
    .immediate();
  failpoint('epoch.after');
  return life;
}

/**
 * Drops types without slices and changes if there are many, because identities come and go. Only a
 * start may do so, because a running process remembers ids.
 */
function dropResources(database: Connection): void {
  const unused = database
    .prepare<[], number>(/*sql*/ `SELECT id FROM resources WHERE id NOT IN (SELECT resource FROM slices)
               AND NOT EXISTS (SELECT 1 FROM changes INDEXED BY changes_by_resource WHERE changes.resource = resources.id)`)
    .pluck()
    .all();
  const drop = database.prepare<[number]>(/*sql*/ `DELETE FROM resources WHERE id = ?`);
  if (unused.length > unusedResourcesMax) for (const id of unused) drop.run(id);
}

/**
 * A store of an older schema may have had no cache id at its migration. Its local shards get their
 * origin here.
 */
function fillOrigins(database: Connection): void {
  database.prepare(/*sql*/ `UPDATE shards SET origin = ? WHERE via = 'local' AND origin = ''`).run(readCacheId(database));
}

/** The caller has opened a transaction. */
export function beginEpoch(database: Connection, last: Epoch | undefined, firstRevision: Revision, parts: EpochParts): Epoch {
  const epoch = { epoch: nextEpoch(last?.epoch ?? 0, parts), firstRevision, nonce: nextNonce(parts) };
  database
    .prepare(/*sql*/ `INSERT INTO epochs (epoch, first_revision, nonce) VALUES (?, ?, ?)`)
    .run(epoch.epoch, epoch.firstRevision, epoch.nonce);
  return epoch;
}

/**
 * Whether the last process did not close the store: it was killed, or the file is a copy of an open
 * store.
 */
export function wasLeftOpen(database: Connection): boolean {
  return readMeta(database, 'open') === 1;
}

export function recordOpen(database: Connection, isOpen: boolean): void {
  database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = 'open'`).run(isOpen ? 1 : 0);
}

/**
 * If the clock was set back, times in the future become the present. Otherwise their changes would
 * not age until the clock reaches those times.
 */
function clampFutureTimes(database: Connection, nowMs: number): void {
  database.prepare(/*sql*/ `UPDATE moments SET at_ms = @nowMs WHERE at_ms > @nowMs`).run({ nowMs });
  database.prepare(/*sql*/ `UPDATE slices SET changed_ms = @nowMs WHERE changed_ms > @nowMs`).run({ nowMs });
}

/** Adds rows that every store needs and an older or new store may lack. */
function addMissingMeta(database: Connection, random: () => number): void {
  const born = {
    revision: 0,
    compacted: 0,
    tombstones_from: 0,
    log_bytes: 0,
    open: 0,
    cache_id: newCacheId(random),
  };
  for (const [name, value] of Object.entries(born)) {
    database.prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`).run(name, value);
  }
}

/**
 * Drops epochs in which nothing was written, because nobody can have a resourceVersion of them.
 * Drops epochs whose rows are all removed and whose deletes are forgotten: their clients get 410
 * either way.
 */
function dropEpochs(database: Connection, revision: Revision): void {
  const epochs = readEpochs(database);
  const remembered = readMeta(database, 'tombstones_from');
  const anyRow = database.prepare<[Revision, Revision], number>(
    /*sql*/ `SELECT 1 FROM changes WHERE revision >= ? AND revision <= ? LIMIT 1`,
  );
  const drop = database.prepare(/*sql*/ `DELETE FROM epochs WHERE epoch = ?`);
  epochs.forEach(({ epoch, firstRevision }, i) => {
    const end = (epochs[i + 1]?.firstRevision ?? revision + 1) - 1;
    // An unused first epoch stays, because an empty store has a resourceVersion, too: that of its
    // creation.
    const isUnused = end < firstRevision && i > 0;
    if (isUnused || (end < remembered && anyRow.get(firstRevision, end) === undefined)) drop.run(epoch);
  });
}

export function readEpochs(database: Connection): readonly Epoch[] {
  return database.prepare<[], Epoch>(/*sql*/ `SELECT epoch, first_revision AS firstRevision, nonce FROM epochs ORDER BY epoch`).all();
}

export function readCacheId(database: Connection): string {
  return String(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = 'cache_id'`).pluck().get());
}

export function readMeta(database: Connection, name: string): number {
  return Number(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = ?`).pluck().get(name));
}
