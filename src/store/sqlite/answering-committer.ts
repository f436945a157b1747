/** The committer behind its messages: each is answered with one. It runs in a thread of its own, and dies with the first bug it meets. */
import { performance } from 'node:perf_hooks';
import { failpoint } from '../../diagnostics/failpoint.js';
import { CacheError, unreachable } from '../../domain/errors.js';
import type { CommitterOptions, FromCommitter, ToCommitter } from './committer-messages.js';
import { Committer } from './committer.js';
import { Compaction } from './compaction.js';
import { isDamage } from './damage.js';
import { isRefusal, type Connection } from './database.js';
import { noteOpen } from './life.js';
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
          this.#wal.written();
          return { kind: 'committed', ...committed, decisions: packDecisions(decided), elapsedMs: performance.now() - startedMs };
        } catch (error) {
          return { kind: 'failed', ...refusalOf(error) };
        }
      case 'compact':
        try {
          const { bytes, ...step } = this.#compaction.step(message);
          this.#wal.written();
          const settled = step.done && this.#wal.cut();
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
        // The reader is still open, so closing makes no checkpoint; with this one a copy of the database file alone is a whole backup.
        this.#database.pragma('wal_checkpoint(TRUNCATE)');
        failpoint('close.truncated');
        this.#database.close();
        return { kind: 'closed' };
      default:
        return unreachable(message);
    }
  }

  /** On a disk that takes nothing the next start checks what it finds. */
  #leave(): void {
    try {
      noteOpen(this.#database, false);
    } catch (error) {
      refusalOf(error);
    }
  }
}

/** Refusals of the disk or of SQLite are reported; damage, and anything else, which is a bug, ends the thread. */
function refusalOf(error: unknown): { message: string; code: string } {
  if (isDamage(error)) throw new CacheError(`the store is damaged: ${error.message}`);
  if (!isRefusal(error)) throw error;
  const { message, code } = error;
  return { message, code };
}
