/**
 * Answers each message to the committer with one message. Runs in the committer's thread; a bug
 * ends that thread.
 */
import { performance } from 'node:perf_hooks';
import { failpoint } from '../../diagnostics/failpoint.js';
import { CacheError, unreachable } from '../../domain/errors.js';
import type { CommitterOptions, FromCommitter, ToCommitter } from './committer-messages.js';
import { Committer } from './committer.js';
import { Compaction } from './compaction.js';
import { isDamage } from './damage.js';
import { isRefusal, type Connection } from './database.js';
import { recordOpen } from './life.js';
import { WalFile } from './wal-file.js';
import { unpackBatch } from './wire-batch.js';
import { packDecisions } from './wire-decisions.js';

export class AnsweringCommitter {
  readonly #database: Connection;
  readonly #committer: Committer;
  readonly #compaction: Compaction;
  readonly #wal: WalFile;

  constructor(database: Connection, { databaseFile, ...options }: CommitterOptions) {
    this.#database = database;
    this.#committer = new Committer(this.#database, options);
    this.#compaction = new Compaction(this.#database);
    this.#wal = new WalFile(this.#database, databaseFile);
  }

  answer(message: ToCommitter): FromCommitter {
    const startedMs = performance.now();
    switch (message.kind) {
      case 'commit':
        try {
          const { decided, ...committed } = this.#committer.commit(unpackBatch(message.batch), message.nowMs);
          this.#wal.afterCommit();
          return { kind: 'committed', ...committed, decisions: packDecisions(decided), elapsedMs: performance.now() - startedMs };
        } catch (error) {
          return { kind: 'failed', ...refusalOf(error) };
        }
      case 'compact':
        try {
          const { bytes, ...step } = this.#compaction.step(message);
          this.#wal.afterCommit();
          const settled = step.done && this.#wal.truncate();
          return { kind: 'compacted', ...step, settled, logBytes: this.#committer.shrink(bytes), elapsedMs: performance.now() - startedMs };
        } catch (error) {
          return { kind: 'not-compacted', ...refusalOf(error) };
        }
      case 'probe':
        try {
          this.#committer.probe();
          return { kind: 'probed', failure: undefined };
        } catch (error) {
          return { kind: 'probed', failure: refusalOf(error).message };
        }
      case 'close':
        this.#leave();
        failpoint('close.noted');
        // While the reader is open, SQLite makes no checkpoint at close. After this one, the
        // database file alone is a complete backup.
        this.#database.pragma('wal_checkpoint(TRUNCATE)');
        failpoint('close.truncated');
        this.#database.close();
        return { kind: 'closed' };
      default:
        return unreachable(message);
    }
  }

  /** Records a clean end. If the disk refuses this write, the next start checks the store. */
  #leave(): void {
    try {
      recordOpen(this.#database, false);
    } catch (error) {
      refusalOf(error);
    }
  }
}

/** The refusal of the disk or of SQLite. Rethrows damage and bugs, which end the thread. */
function refusalOf(error: unknown): { message: string; code: string } {
  if (isDamage(error)) throw new CacheError(`the store is damaged: ${error.message}`);
  if (!isRefusal(error)) throw error;
  const { message, code } = error;
  return { message, code };
}
