/**
 * The only writer: one transaction per batch. Each mutation and push is decided inside the
 * transaction, in queue order. Revisions are gapless (change-writer.ts I2).
 *
 * I3 A batch is durable before anyone learns of it. A batch that fails changes nothing, but ends
 *    its syncs and removals. The syncs have lost pushes, and the callers of the removals have their
 *    answer.
 */
import assert from 'node:assert/strict';
import { failpoint } from '../../diagnostics/failpoint.js';
import { ChangeWriter } from './change-writer.js';
import type { BatchItem } from '../batch-item.js';
import type { Committed, CommitterOptions } from './committer-messages.js';
import { isFailureOfDisk } from './damage.js';
import type { Connection, Transaction } from './database.js';
import { Decider } from './decider.js';
import { isUsedUp, type Epoch } from '../epochs.js';
import { ShardTable } from './shard-table.js';
import { beginEpoch, readEpochs } from './life.js';
import { LinkTable } from './link-table.js';
import { SliceTable } from './slice-table.js';
import { Syncs } from '../syncs.js';
import { Sweep } from './sweep.js';

type Done = Pick<Committed, 'decided' | 'slices' | 'begun'>;

export class Committer {
  readonly #database: Connection;
  readonly #momentIntervalMs: number;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #syncs = new Syncs();
  readonly #shards: ShardTable;
  readonly #links: LinkTable;
  readonly #slices: SliceTable;
  readonly #writer: ChangeWriter;
  readonly #decider: Decider;
  /** Created once, because its creation costs a tenth of a small commit. */
  readonly #transaction: Transaction<(batch: readonly BatchItem[], nowMs: number) => Done>;
  #epoch: Epoch | undefined;
  #momentMs: number;

  constructor(database: Connection, { momentIntervalMs, keptNames }: Omit<CommitterOptions, 'databaseFile'>) {
    this.#database = database;
    this.#momentIntervalMs = momentIntervalMs;
    this.#statements = prepare(database);
    this.#shards = new ShardTable(database);
    this.#links = new LinkTable(database);
    this.#slices = new SliceTable(database);
    this.#writer = new ChangeWriter(database, this.#slices, this.#syncs);
    this.#decider = new Decider({
      shards: this.#shards,
      links: this.#links,
      slices: this.#slices,
      writer: this.#writer,
      sweep: new Sweep(database, this.#writer),
      syncs: this.#syncs,
      keptNames,
    });
    this.#transaction = database.transaction((batch: readonly BatchItem[], nowMs: number) => this.#decide(batch, nowMs));
    this.#epoch = readEpochs(database).at(-1);
    this.#momentMs = this.#statements.lastMoment.get() ?? 0;
  }

  /** Throws SQLite's error if the disk refuses the batch, and leaves the state as before. */
  commit(batch: readonly BatchItem[], nowMs: number): Committed {
    const momentMs = this.#momentMs;
    this.#writer.open();
    this.#slices.open(nowMs);
    this.#syncs.open();
    this.#decider.open(batch.length);
    let done: Done;
    try {
      done = this.#transaction.immediate(batch, nowMs);
    } catch (error) {
      this.#momentMs = momentMs;
      this.#writer.undo();
      this.#slices.undo();
      this.#shards.undo();
      this.#links.undo();
      this.#syncs.undo(this.#writer.revision, batch);
      if (isFailureOfDisk(error)) this.#replaceWritten();
      throw error;
    }
    failpoint('commit.after');
    return this.#committed(done);
  }

  #decide(batch: readonly BatchItem[], nowMs: number): Done {
    const begun = this.#nextEpoch(nowMs);
    const decided = batch.map((asked) => this.#decider.decide(asked));
    const slices = this.#slices.write();
    if (this.#writer.written > 0) this.#record(nowMs);
    failpoint('commit.before');
    return { decided, slices, begun };
  }

  /**
   * Compaction has removed this many bytes from the log, and has recorded that in the database.
   * Returns the bytes of the log.
   */
  shrink(bytes: number): number {
    this.#writer.shrink(bytes);
    return this.#writer.logBytes;
  }

  /**
   * After a failed fsync, SQLite's log still contains the transaction, and a start after a crash
   * would apply it. So this overwrites the transaction with a meaningless write.
   */
  #replaceWritten(): void {
    try {
      this.probe();
    } catch {
      // This write was not synchronised either, but has overwritten the transaction.
    }
  }

  /** Makes a meaningless write. Throws SQLite's error if the disk refuses it. */
  probe(): void {
    this.#statements.countProbe.run();
  }

  #committed(done: Done): Committed {
    const { revision, written, rewritten, moves, logBytes } = this.#writer;
    const { swept } = this.#decider;
    const asked = done.decided.filter(({ kind }) => kind === 'written').length;
    assert.equal(written, asked + rewritten.length + swept.length, 'I2');
    this.#epoch = done.begun ?? this.#epoch;
    const [shards, links] = [this.#shards.changed, this.#links.changed];
    this.#slices.keep();
    this.#shards.keep();
    this.#links.keep();
    return { revision, ...done, rewritten, swept, moves, shards, links, logBytes };
  }

  #nextEpoch(nowMs: number): Epoch | undefined {
    const { revision } = this.#writer;
    if (this.#epoch === undefined || !isUsedUp(this.#epoch, revision)) return undefined;
    // Needs no random part: two lives from one state cannot both make nine thousand million changes
    // and get here in the same second.
    return beginEpoch(this.#database, this.#epoch, revision + 1, { nowMs, random: () => 0 });
  }

  #record(nowMs: number): void {
    const { revision, logBytes } = this.#writer;
    this.#statements.setMeta.run(revision, 'revision');
    this.#statements.setMeta.run(logBytes, 'log_bytes');
    if (nowMs - this.#momentMs < this.#momentIntervalMs && nowMs >= this.#momentMs) return;
    this.#statements.setMoment.run(revision, nowMs);
    this.#momentMs = nowMs;
  }
}

function prepare(database: Connection) {
  return {
    setMeta: database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`),
    // SQLite does not write a page that does not change, so each probe counts up.
    countProbe: database.prepare(
      /*sql*/ `INSERT INTO meta (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1`,
    ),
    setMoment: database.prepare(
      /*sql*/ `INSERT INTO moments (revision, at_ms) VALUES (?, ?) ON CONFLICT (revision) DO UPDATE SET at_ms = excluded.at_ms`,
    ),
    lastMoment: database.prepare<[], number>(/*sql*/ `SELECT at_ms FROM moments ORDER BY revision DESC LIMIT 1`).pluck(),
  };
}
