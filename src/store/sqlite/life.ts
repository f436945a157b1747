/**
 * A store's life: its birth, its epochs, and what it holds when it is opened. Runs before the committer does, with the
 * lock held, and leaves a database that every other file here may rely on.
 */
import type { Revision } from '../../domain/revision.js';
import { readMeta } from './meta.js';
import type { Connection } from './database.js';
import { firstEpoch, nextEpoch, type Epoch } from './epochs.js';
import { wasRolledBack, type Testimony } from './witness.js';

export type Life = Readonly<{
  nonce: string;
  /** Made once, at birth; a copy has it too. */
  cacheId: string;
  epochs: readonly Epoch[];
  revision: Revision;
  compacted: Revision;
  logBytes: number;
  /** True when a new epoch began because what the store acknowledged may have been rolled back. */
  rolledBack: boolean;
}>;

const cacheIdDigits = 16;

/** `nonce` is new with every start; `random` gives [0, 1). */
export function begin(database: Connection, testimony: Testimony | undefined, nonce: string, random: () => number): Life {
  return database
    .transaction((): Life => {
      const isNew = database.prepare(/*sql*/ `SELECT 1 FROM epochs LIMIT 1`).get() === undefined;
      const later = (epoch: number): number => nextEpoch(Math.max(epoch, testimony?.epoch ?? 0), random);
      if (isNew) bear(database, nonce, testimony === undefined ? firstEpoch(random) : later(0));
      const rolledBack = !isNew && wasRolledBack(facts(database), testimony);
      const epochs = readEpochs(database);
      const revision = readMeta(database, 'revision');
      if (rolledBack) epochs.push(addEpoch(database, later(epochs.at(-1)?.epoch ?? 0), revision + 1));
      // Of what pushers and links have told some may be lost, so that nobody can go on with changes.
      const unstate = database.prepare(/*sql*/ `UPDATE slices SET stated = 0, edge = ''`);
      const unreach = database.prepare(/*sql*/ `UPDATE links SET position = ''`);
      if (rolledBack) for (const statement of [unstate, unreach]) statement.run();
      // A store of the first schema has none yet.
      database
        .prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES ('cache_id', ?) ON CONFLICT (name) DO NOTHING`)
        .run(randomDigits(cacheIdDigits, random));
      // Until the witness has the new nonce, the one it has now must go on matching, however often a start is cut short.
      setText(database, 'previous_nonce', isNew || rolledBack || testimony === undefined ? readText(database, 'nonce') : testimony.nonce);
      setText(database, 'nonce', nonce);
      return {
        nonce,
        cacheId: readText(database, 'cache_id'),
        epochs,
        revision,
        compacted: readMeta(database, 'compacted'),
        logBytes: readMeta(database, 'log_bytes'),
        rolledBack,
      };
    })
    .immediate();
}

/** Hexadecimal digits; `random` gives [0, 1). */
export function randomDigits(digits: number, random: () => number): string {
  return Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
}

function bear(database: Connection, nonce: string, epoch: number): void {
  addEpoch(database, epoch, 1);
  const born = { nonce, previous_nonce: nonce, revision: 0, compacted: 0, tombstones_from: 0, log_bytes: 0 };
  for (const [name, value] of Object.entries(born)) {
    database.prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES (?, ?)`).run(name, value);
  }
}

function facts(database: Connection): { nonce: string; previousNonce: string; revision: number } {
  return {
    nonce: readText(database, 'nonce'),
    previousNonce: readText(database, 'previous_nonce'),
    revision: readMeta(database, 'revision'),
  };
}

function addEpoch(database: Connection, epoch: number, firstRevision: Revision): Epoch {
  database.prepare(/*sql*/ `INSERT INTO epochs (epoch, first_revision) VALUES (?, ?)`).run(epoch, firstRevision);
  return { epoch, firstRevision };
}

function readEpochs(database: Connection): Epoch[] {
  return database
    .prepare<[], { epoch: number; first_revision: number }>(/*sql*/ `SELECT epoch, first_revision FROM epochs ORDER BY epoch`)
    .all()
    .map(({ epoch, first_revision: firstRevision }) => ({ epoch, firstRevision }));
}

function readText(database: Connection, name: string): string {
  return String(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = ?`).pluck().get(name));
}

function setText(database: Connection, name: string, value: string): void {
  database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`).run(value, name);
}
