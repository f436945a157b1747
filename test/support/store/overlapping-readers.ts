/**
 * A thread that always has a read transaction open. Each takes some milliseconds, and the next
 * begins before the last one ends.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { openReader } from '../../../src/store/sqlite/database.js';

const readers = [openReader(workerData as string), openReader(workerData as string)];
let isReading = true;
let turns = 0;
parentPort?.once('message', () => (isReading = false));

function begin(): void {
  const reader = readers[turns++ % readers.length];
  reader?.exec('BEGIN');
  reader?.prepare(/*sql*/ `SELECT count(*) FROM sqlite_schema`).get();
}

begin();
parentPort?.postMessage('reading');
while (isReading) {
  await sleep(5);
  begin();
  await sleep(1);
  readers[turns % readers.length]?.exec('COMMIT');
}
for (const reader of readers) reader.close();
parentPort?.postMessage(turns);
