/**
 * Keeps the file of the write-ahead log small (F28). SQLite makes a checkpoint after a commit,
 * without waiting for readers. The log starts over only if no reader uses it at that moment.
 * Readers that follow each other without a gap prevent that for ever:
 *
 *   reads    ──[    ]──[     ]──      each shorter than a tick, but there is always one
 *   commits    │   │   │   │   │      each finds a reader that began before it
 *
 * So after a commit that finds the file too long, the writer waits for the readers of the log.
 * Readers that begin meanwhile read only the database file, so the writer waits for at most two
 * ticks. `journal_size_limit` then cuts the file.
 *
 * Readers of the log do not see the pages that compaction gave back. But the database file keeps
 * its length until a checkpoint reaches the end of the log. Without further writes no commit brings
 * such a checkpoint, so compaction asks for one after its last step (`truncate`). `truncate` waits for no
 * reader: once writes stop, readers leave the log.
 *
 * Bounds: the log has at most `walBytesMax` and one commit, unless a reader goes on for longer than
 * `patienceMs`. Both files together have at most the pages of the database and `behindBytesMax`, a
 * second after compaction is done. They have more only while a reader reads an older state.
 */
import { failpoint } from '../../diagnostics/failpoint.js';
import { busyTimeoutMs, isRefusal, walKeptBytes, type Connection } from './database.js';
import { bytesOf } from './store-files.js';

const mebibyte = 1024 * 1024;
const walBytesMax = 32 * mebibyte;
/**
 * More than the log that SQLite's own checkpoints leave, because these are enough while commits
 * continue.
 */
const behindBytesMax = walKeptBytes + 8 * mebibyte;
/** How long the writer waits for readers. */
const patienceMs = 100;
/** After the writer has waited in vain, it tries again when the log has grown by this much. */
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
  afterCommit(): void {
    const bytes = bytesOf(this.#file) ?? 0;
    if (bytes <= this.#triesAt) return;
    failpoint('log.before-restart');
    if (!this.#checkpoint('RESTART', patienceMs)) this.#triesAt = bytes + retryBytes;
    failpoint('log.after-restart');
  }

  /**
   * Cuts both files to their content if they are much longer. Returns whether they are short then.
   */
  truncate(): boolean {
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
      // The commit is in the log, whether or not the disk also accepts the checkpoint.
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
