/**
 * Loaded into a server before its own code (`--import`): notes each long turn of its event loop, by the processor time of
 * the serving thread alone. Other processes and other threads of this one on a shared machine are not counted.
 *
 * Linux gives that time to the nearest tick of its scheduler, 4 ms at most.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const intervalMs = 1;
const notedMsMin = 4;
const file = process.env['TURN_METER_FILE'];

function workedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6;
}

/** A line for each turn: how long it worked, in milliseconds. */
function measure(path: string): void {
  let before = workedMs();
  setInterval(() => {
    const now = workedMs();
    if (now - before >= notedMsMin) appendFileSync(path, `${(now - before).toFixed(1)}\n`);
    before = workedMs();
  }, intervalMs).unref();
}

if (isMainThread && file !== undefined) measure(file);
