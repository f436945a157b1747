/** The committer's thread: receives one message at a time, answers each with one. It dies with the first bug it meets. */
import { performance } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { failpoint } from '../../diagnostics/failpoint.js';
import { CacheError, unreachable } from '../../domain/errors.js';
import type { CommitterOptions, FromCommitter, ToCommitter } from './committer-messages.js';
import { Committer } from './committer.js';
import { Compaction } from './compaction.js';
import { isDamage } from './damage.js';
import { isRefusal, openWriter } from './database.js';
import { noteOpen } from './life.js';
import { WalFile } from './wal-file.js';
import { unpackBatch } from './wire-batch.js';
import { packDecisions } from './wire-decisions.js';

const { databaseFile, momentIntervalMs } = workerData as CommitterOptions;
const port = parentPort;
if (port === null) throw new Error('the committer runs in a worker thread');

const database = openWriter(databaseFile);
const committer = new Committer(database, momentIntervalMs);
const compaction = new Compaction(database);
const wal = new WalFile(database, databaseFile);

port.on('message', (message: ToCommitter) => port.postMessage(answer(message)));
port.postMessage({ kind: 'ready' } satisfies FromCommitter);

function answer(message: ToCommitter): FromCommitter {
  const startedMs = performance.now();
  switch (message.kind) {
    case 'commit':
      try {
        const { decided, ...committed } = committer.commit(unpackBatch(message.batch), message.nowMs);
        wal.written();
        return { kind: 'committed', ...committed, decisions: packDecisions(decided), elapsedMs: performance.now() - startedMs };
      } catch (error) {
        return { kind: 'failed', ...refusalOf(error) };
      }
    case 'compact':
      try {
        const { bytes, ...step } = compaction.step(message);
        wal.written();
        const settled = step.done && wal.cut();
        return { kind: 'compacted', ...step, settled, logBytes: committer.shrink(bytes), elapsedMs: performance.now() - startedMs };
      } catch (error) {
        return { kind: 'not-compacted', ...refusalOf(error) };
      }
    case 'probe':
      try {
        committer.probe();
        return { kind: 'probed', failure: undefined };
      } catch (error) {
        return { kind: 'probed', failure: refusalOf(error).message };
      }
    case 'close':
      leave();
      failpoint('close.noted');
      // The reader is still open, so closing makes no checkpoint; with this one a copy of the database file alone is a whole backup.
      database.pragma('wal_checkpoint(TRUNCATE)');
      failpoint('close.truncated');
      database.close();
      port?.close();
      return { kind: 'closed' };
    default:
      return unreachable(message);
  }
}

/** On a disk that takes nothing the next start checks what it finds. */
function leave(): void {
  try {
    noteOpen(database, false);
  } catch (error) {
    refusalOf(error);
  }
}

/** Refusals of the disk or of SQLite are reported; damage, and anything else, which is a bug, ends the thread. */
function refusalOf(error: unknown): { message: string; code: string } {
  if (isDamage(error)) throw new CacheError(`the store is damaged: ${error.message}`);
  if (!isRefusal(error)) throw error;
  const { message, code } = error;
  return { message, code };
}
