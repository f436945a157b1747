/**
 * The committer's half of the store without its thread: it commits and compacts, on a file of its
 * own.
 */
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { Committer } from '../../../src/store/sqlite/committer.js';
import type { BatchItem } from '../../../src/store/batch-item.js';
import type { Committed } from '../../../src/store/sqlite/committer-messages.js';
import { Compaction } from '../../../src/store/sqlite/compaction.js';
import { openWriter, type Connection } from '../../../src/store/sqlite/database.js';
import { begin } from '../../../src/store/sqlite/life.js';
import { migrate } from '../../../src/store/sqlite/migrate.js';
import { projectFile } from '../project.js';
import { storeDirectory } from '../test-store.js';

export type WritingHalf = Readonly<{
  database: Connection;
  compaction: Compaction;
  commit: (...batch: readonly BatchItem[]) => Committed;
}>;

export function aWritingHalf(t: ExecutionContext, nowMs = 1_000_000): WritingHalf {
  const directory = storeDirectory(t);
  const database = openWriter(join(directory, 'strata.db'));
  migrate(database, projectFile('migrations'));
  begin(database, { nowMs, random: () => 0 });
  const committer = new Committer(database, { momentIntervalMs: 60_000, keptNames: new Map() });
  t.teardown(() => database.close());
  return { database, compaction: new Compaction(database), commit: (...batch) => committer.commit(batch, nowMs) };
}

/** The contents of all tables, for tests that nothing has changed. */
export function dump(database: Connection): Record<string, unknown[]> {
  const tables = [
    'meta',
    'epochs',
    'resources',
    'changes',
    'objects',
    'paths',
    'path_moves',
    'milestones',
    'moments',
    'shards',
    'slices',
    'links',
  ];
  return Object.fromEntries(tables.map((table) => [table, database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()]));
}

export function rowsOf(database: Connection): string[] {
  return database
    .prepare<[], { revision: number; kind: number }>('SELECT revision, kind FROM changes ORDER BY revision')
    .all()
    .map(({ revision, kind }) => `${revision}${kind === 2 ? ' tombstone' : ''}`);
}
