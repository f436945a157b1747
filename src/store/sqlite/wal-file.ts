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
 * Bound: `walBytesMax` and a commit, unless somebody reads on for longer than `patienceMs`.
 */
import { statSync } from 'node:fs';
import { failpoint } from '../../diagnostics/failpoint.js';
import { busyTimeoutMs, isRefusal, type Connection } from './database.js';

const mebibyte = 1024 * 1024;
const walBytesMax = 32 * mebibyte;
/** How long the writer waits for readers. */
const patienceMs = 100;
/** After it waited in vain it tries again when the log has grown by so much more. */
const retryBytes = 8 * mebibyte;

export class WalFile {
  readonly #database: Connection;
  readonly #file: string;
  #triesAt = walBytesMax;

  constructor(database: Connection, databaseFile: string) {
    this.#database = database;
    this.#file = `${databaseFile}-wal`;
  }

  /** A transaction was committed. */
  written(): void {
    const bytes = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes <= this.#triesAt) return;
    failpoint('log.before-restart');
    this.#triesAt = this.#startOver() ? walBytesMax : bytes + retryBytes;
    failpoint('log.after-restart');
  }

  #startOver(): boolean {
    this.#database.pragma(`busy_timeout = ${patienceMs}`);
    try {
      const [result] = this.#database.pragma('wal_checkpoint(RESTART)') as { busy: number }[];
      return result?.busy === 0;
    } catch (error) {
      // What was committed stands in the log, whether or not the disk takes it a second time.
      if (isRefusal(error)) return false;
      throw error;
    } finally {
      this.#database.pragma(`busy_timeout = ${busyTimeoutMs}`);
    }
  }
}
