/**
 * A store's life: its birth, its epochs, and what it holds when it is opened. Runs before the committer does, with the
 * lock held, and leaves a database that every other file here may rely on.
 *
 * Bound: an epoch for each start after which something was written that is still here or remembered.
 */
import { failpoint } from '../../diagnostics/failpoint.js';
import type { Revision } from '../../domain/revision.js';
import type { Connection } from './database.js';
import { newCacheId, nextEpoch, nextNonce, type Epoch, type EpochParts } from '../epochs.js';
import { hasCacheId, readCacheId, readMeta } from './meta.js';

export type Life = Readonly<{
  /** Made once, at birth; a copy has it too. */
  cacheId: string;
  /** The last one begins now. */
  epochs: readonly Epoch[];
  revision: Revision;
  compacted: Revision;
  logBytes: number;
}>;

const unusedResourcesMax = 1_000;

export function begin(database: Connection, parts: EpochParts): Life {
  const life = database
    .transaction((): Life => {
      bear(database, parts.random);
      noteOrigins(database);
      noteOpen(database, true);
      forgetFuture(database, parts.nowMs);
      const revision = readMeta(database, 'revision');
      const last = readEpochs(database).at(-1);
      dropEpochs(database, revision);
      dropResources(database);
      // What is there without an epoch had resourceVersions of another form, which nobody may mistake for present ones.
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

/** Types that hold nothing and that nothing remembers, because identities come and go. Not while a process runs, which may know their ids; and a few are no trouble. */
function dropResources(database: Connection): void {
  const unused = database
    .prepare<[], number>(/*sql*/ `SELECT id FROM resources WHERE id NOT IN (SELECT resource FROM slices)
               AND NOT EXISTS (SELECT 1 FROM changes INDEXED BY changes_by_resource WHERE changes.resource = resources.id)`)
    .pluck()
    .all();
  const drop = database.prepare<[number]>(/*sql*/ `DELETE FROM resources WHERE id = ?`);
  if (unused.length > unusedResourcesMax) for (const id of unused) drop.run(id);
}

/** A store of an older schema may have had no id when it was migrated: what is local gets its origin here. */
function noteOrigins(database: Connection): void {
  database.prepare(/*sql*/ `UPDATE shards SET origin = ? WHERE via = 'local' AND origin = ''`).run(readCacheId(database));
}

/** Within a transaction: begins the epoch that counts from `firstRevision` on. */
export function beginEpoch(database: Connection, last: Epoch | undefined, firstRevision: Revision, parts: EpochParts): Epoch {
  const epoch = { epoch: nextEpoch(last?.epoch ?? 0, parts), firstRevision, nonce: nextNonce(parts) };
  database
    .prepare(/*sql*/ `INSERT INTO epochs (epoch, first_revision, nonce) VALUES (?, ?, ?)`)
    .run(epoch.epoch, epoch.firstRevision, epoch.nonce);
  return epoch;
}

/** Whether the last life has ended without closing: the process was killed, or this is a copy of a store that was open. */
export function wasLeftOpen(database: Connection): boolean {
  return readMeta(database, 'open') === 1;
}

export function noteOpen(database: Connection, isOpen: boolean): void {
  database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = 'open'`).run(isOpen ? 1 : 0);
}

/** If the clock was set back since, times ahead of it count as now: otherwise nothing would age until the clock is there again. */
function forgetFuture(database: Connection, nowMs: number): void {
  database.prepare(/*sql*/ `UPDATE moments SET at_ms = @nowMs WHERE at_ms > @nowMs`).run({ nowMs });
  database.prepare(/*sql*/ `UPDATE slices SET changed_ms = @nowMs WHERE changed_ms > @nowMs`).run({ nowMs });
}

/** What every store needs and an older one may lack. */
function bear(database: Connection, random: () => number): void {
  const born = {
    revision: 0,
    compacted: 0,
    tombstones_from: 0,
    log_bytes: 0,
    open: 0,
    ...(hasCacheId(database) ? {} : { cache_id: newCacheId(random) }),
  };
  for (const [name, value] of Object.entries(born)) {
    database.prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`).run(name, value);
  }
}

/**
 * Drops epochs of which nobody can hold a resourceVersion, because nothing was written in them, and those of which nothing is left: no row, and no
 * revision since which deletes are still remembered. Their resourceVersions are then foreign, with the same result: 410.
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
    // An empty store has a resourceVersion too, the one of its birth.
    const isUnused = end < firstRevision && i > 0;
    if (isUnused || (end < remembered && anyRow.get(firstRevision, end) === undefined)) drop.run(epoch);
  });
}

export function readEpochs(database: Connection): readonly Epoch[] {
  return database.prepare<[], Epoch>(/*sql*/ `SELECT epoch, first_revision AS firstRevision, nonce FROM epochs ORDER BY epoch`).all();
}
