/**
 * Keeps the file of the write-ahead log small (F28). SQLite checkpoints by itself behind a commit, without waiting for anybody; the log starts
 * over only if at that moment no reader stands in it. Readers that follow each other without a gap put that off for ever:
 *
 *   reads    ──[    ]──[     ]──      each shorter than a tick, but there is always one
 *   commits    │   │   │   │   │      each finds one that began before it
 *
 * So behind a commit that finds the file too long the writer waits for the readers in it. Those that come meanwhile read the
 * database file alone, so it waits for no more than two ticks. `journal_size_limit` then cuts the file.
 *
 * Pages that compaction gave back leave the database file with a checkpoint as well. Where nobody writes any more none would come, so one follows
 * when compaction is done; it waits for nobody.
 *
 * Bound: `walBytesMax` and a commit, unless somebody reads on for longer than `patienceMs`.
 */
import { statSync } from 'node:fs';
import { busyTimeoutMs, isRefusal, type Connection } from './database.js';

const mebibyte = 1024 * 1024;
const walBytesMax = 32 * mebibyte;
/** How long the writer waits for readers. */
const patienceMs = 100;
/** After it waited in vain it tries again when the log has grown by so much more. */
const retryBytes = 8 * mebibyte;
/** What the database file may be longer than the database is while nobody writes. */
const staleBytesMax = 8 * mebibyte;

export class WalFile {
  readonly #database: Connection;
  readonly #databaseFile: string;
  readonly #file: string;
  #triesAt = walBytesMax;

  constructor(database: Connection, databaseFile: string) {
    this.#database = database;
    this.#databaseFile = databaseFile;
    this.#file = `${databaseFile}-wal`;
  }

  /** A transaction was committed. */
  written(): void {
    const bytes = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes <= this.#triesAt) return;
    this.#triesAt = this.#startOver() ? walBytesMax : bytes + retryBytes;
  }

  /** Compaction has nothing left to do: the database file gets as short as the database is. */
  settled(): void {
    const { size } = statSync(this.#databaseFile);
    const pragma = (name: string): number => Number(this.#database.pragma(name, { simple: true }));
    if (size > pragma('page_count') * pragma('page_size') + staleBytesMax) this.#checkpoint('PASSIVE');
  }

  #startOver(): boolean {
    this.#database.pragma(`busy_timeout = ${patienceMs}`);
    try {
      return this.#checkpoint('RESTART');
    } finally {
      this.#database.pragma(`busy_timeout = ${busyTimeoutMs}`);
    }
  }

  /** PASSIVE waits for nobody, RESTART for readers. Answers whether nobody was in its way. */
  #checkpoint(mode: 'PASSIVE' | 'RESTART'): boolean {
    try {
      const [result] = this.#database.pragma(`wal_checkpoint(${mode})`) as { busy: number }[];
      return result?.busy === 0;
    } catch (error) {
      // What was committed stands in the log, whether or not the disk takes it a second time.
      if (isRefusal(error)) return false;
      throw error;
    }
  }
}
