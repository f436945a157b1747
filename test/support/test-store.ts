/** A store in a directory of its own, with bounds that a test may narrow. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../src/clock.js';
import type { Log } from '../../src/diagnostics/log.js';
import type { Mutation, Outcome } from '../../src/domain/mutation.js';
import type { Clock } from '../../src/domain/ports.js';
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js';
import type { SqliteStore } from '../../src/store/sqlite/store.js';
import type { StoreLimits } from '../../src/store/sqlite/store-options.js';
import { copyDatabase } from './made-before.js';
import { projectFile } from './project.js';

const mebibyte = 1024 * 1024;

export const storeLimits: StoreLimits = {
  queue: {
    mutationsMax: 10_000,
    bytesMax: 64 * mebibyte,
    pushMutationsMax: 1_024,
    pushBytesMax: 16 * mebibyte,
    batchMutationsMax: 512,
    batchBytesMax: 8 * mebibyte,
    sharedDivisor: 1,
  },
  history: {
    historyAgeMs: 86_400_000,
    historyChangesMax: 1_000_000,
    historyBytesMax: 4096 * mebibyte,
    tombstoneAgeMs: 30 * 86_400_000,
    tombstonesMax: 1_000_000,
  },
  snapshot: { rowsMax: 500, bytesMax: 262_144 },
  snapshotHoldMs: 60_000,
  recentBytesMax: 8 * mebibyte,
  startCheckBytesMax: 1024 * mebibyte,
  keptNames: new Map(),
};

export const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };

export type Written = Extract<Outcome, { kind: 'written' }>;

export function storeDirectory(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'strata-store-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function openTestStore(directory: string, limits: Partial<StoreLimits> = {}, clock: Clock = systemClock): Promise<SqliteStore> {
  const observe = { committed: () => {}, compacted: () => {} };
  copyDatabase(directory);
  return openSqlite(
    directory,
    projectFile('migrations'),
    { ...storeLimits, ...limits },
    { log: silent, clock, random: Math.random, observe },
  );
}

/** Submits the mutation; throws unless it is written. */
export async function write(store: SqliteStore, mutation: Mutation): Promise<Written> {
  const outcome = await store.writer.submit(mutation);
  if (outcome.kind !== 'written') throw new Error(`not written: ${JSON.stringify(outcome)}`);
  return outcome;
}
