/**
 * Loaded into a server before its own code (`--import`): records each long turn of its event loop,
 * by the processor time of the serving thread. Other processes on the machine, and other threads of
 * this one, do not count.
 *
 * Linux measures that time by the ticks of its scheduler, of 4 ms at most.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const intervalMs = 1;
const notedMsMin = 4;
const file = process.env['TURN_METER_FILE'];

function workedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6;
}

/** Writes a line for each turn that was not short: its processor time in milliseconds. */
function measure(path: string): void {
  let before = workedMs();
  setInterval(() => {
    const now = workedMs();
    if (now - before >= notedMsMin) appendFileSync(path, `${(now - before).toFixed(1)}\n`);
    before = workedMs();
  }, intervalMs).unref();
}

if (isMainThread && file !== undefined) measure(file);
