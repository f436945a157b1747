/**
 * Keeps the file of the write-ahead log small (F28). SQLite checkpoints by itself after a commit, without waiting for anybody; the log starts
 * over only if at that moment no reader uses it. Readers that follow each other without a gap put that off for ever:
 *
 *   reads    ──[    ]──[     ]──      each shorter than a tick, but there is always one
 *   commits    │   │   │   │   │      each finds one that began before it
 *
 * So after a commit that finds the file too long the writer waits for the readers in it. Those that come meanwhile read the
 * database file alone, so it waits for no more than two ticks. `journal_size_limit` then cuts the file.
 *
 * Readers of the log do not see the pages that compaction gave back, but the database file keeps its length until a checkpoint comes to the
 * log's end. When nothing more is written no commit brings one, so compaction asks for it after its last step (`cut`). That waits for nobody:
 * once writers rest, readers leave the log by themselves.
 *
 * Bounds: of the log `walBytesMax` and a commit, unless somebody reads on for longer than `patienceMs`. Of both files together, a second after
 * compaction is done: the pages of the database and `behindBytesMax`, unless somebody still reads an older state.
 */
import { failpoint } from '../../diagnostics/failpoint.js';
import { busyTimeoutMs, isRefusal, walKeptBytes, type Connection } from './database.js';
import { bytesOf } from './store-files.js';

const mebibyte = 1024 * 1024;
const walBytesMax = 32 * mebibyte;
/** More than the log that SQLite's own checkpoints leave: while commits go on they are enough. */
const behindBytesMax = walKeptBytes + 8 * mebibyte;
/** How long the writer waits for readers. */
const patienceMs = 100;
/** After it waited in vain it tries again when the log has grown by so much more. */
const retryBytes = 8 * mebibyte;

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
    const bytes = bytesOf(this.#file) ?? 0;
    if (bytes <= this.#triesAt) return;
    failpoint('log.before-restart');
    if (!this.#checkpoint('RESTART', patienceMs)) this.#triesAt = bytes + retryBytes;
    failpoint('log.after-restart');
  }

  /** Cuts both files to their content when they are much longer. Returns whether they are short. */
  cut(): boolean {
    const held = this.#pragma('page_count') * this.#pragma('page_size');
    const bytes = (bytesOf(this.#databaseFile) ?? 0) + (bytesOf(this.#file) ?? 0);
    return bytes <= held + behindBytesMax || this.#checkpoint('TRUNCATE', 0);
  }

  #checkpoint(how: 'RESTART' | 'TRUNCATE', waitMs: number): boolean {
    this.#database.pragma(`busy_timeout = ${waitMs}`);
    try {
      const [result] = this.#database.pragma(`wal_checkpoint(${how})`) as { busy: number }[];
      if (result?.busy !== 0) return false;
      this.#triesAt = walBytesMax;
      return true;
    } catch (error) {
      // What was committed is in the log, whether or not the disk takes it a second time.
      if (isRefusal(error)) return false;
      throw error;
    } finally {
      this.#database.pragma(`busy_timeout = ${busyTimeoutMs}`);
    }
  }

  #pragma(name: string): number {
    return Number(this.#database.pragma(name, { simple: true }));
  }
}
