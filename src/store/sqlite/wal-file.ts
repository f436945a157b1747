/**
 * Keeps the file of the write-ahead log small (F28). After a commit, SQLite makes a checkpoint
 * without waiting for readers. The log starts over only if no reader uses it at that moment.
 * Readers that follow each other without a gap prevent that for ever:
 *
 *   reads    ──[    ]──[     ]──      each shorter than a tick, but there is always one
 *   commits    │   │   │   │   │      each finds a reader that began before it
 *
 * So after a commit that finds the file too long, the writer makes a checkpoint that waits for the
 * readers of the log. Readers that begin during the wait read only the database file, so the wait
 * takes at most two ticks. `journal_size_limit` then cuts the file.
 *
 * The database file keeps the pages that compaction gave back until a checkpoint reaches the end of
 * the log. Without further writes, no commit makes such a checkpoint, so compaction requests one
 * after its last step (`truncate`). `truncate` waits for no reader: once writes stop, readers leave
 * the log.
 *
 * Bounds: the log has at most `walBytesMax` and one commit, unless a reader takes longer than
 * `patienceMs`. A second after compaction is done, both files have at most the database's pages and
 * `behindBytesMax`, except while a reader reads an older state.
 */
import { failpoint } from '../../diagnostics/failpoint.js';
import { busyTimeoutMs, isRefusal, readPragma, walKeptBytes, type Connection } from './database.js';
import { bytesOf } from './store-files.js';

const mebibyte = 1024 * 1024;
const walBytesMax = 32 * mebibyte;
/**
 * More than the log that SQLite's own checkpoints leave: while commits continue, those checkpoints
 * are enough.
 */
const behindBytesMax = walKeptBytes + 8 * mebibyte;
/** How long the writer waits for readers. */
const patienceMs = 100;
/** After a wait in vain, the writer tries again when the log has grown by this much. */
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

  afterCommit(): void {
    const bytes = bytesOf(this.#file) ?? 0;
    if (bytes <= this.#triesAt) return;
    failpoint('log.before-restart');
    if (!this.#checkpoint('RESTART', patienceMs)) this.#triesAt = bytes + retryBytes;
    failpoint('log.after-restart');
  }

  /** Cuts both files to their content if they are much longer. Returns false if that failed. */
  truncate(): boolean {
    const held = readPragma(this.#database, 'page_count') * readPragma(this.#database, 'page_size');
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
      // The commit is durable in the log, whether or not the disk accepts the checkpoint.
      if (isRefusal(error)) return false;
      throw error;
    } finally {
      this.#database.pragma(`busy_timeout = ${busyTimeoutMs}`);
    }
  }
}
