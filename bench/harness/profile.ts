/**
 * Loaded into the measured server by `--profile` (node --import): writes a V8 CPU profile of each
 * of its threads. The main thread writes one at every SIGUSR2, so each round of each question has
 * one, numbered in the order of asking. A worker's profile covers the whole run. (NODE_OPTIONS does
 * not allow node --cpu-prof.)
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { isMainThread, threadId } from 'node:worker_threads';

const folder = process.env['BENCH_PROFILE'];
if (folder !== undefined) profileInto(folder);

function profileInto(into: string): void {
  mkdirSync(into, { recursive: true });
  const session = new Session();
  let count = 0;
  const begin = (): void => session.post('Profiler.start');
  /** The session belongs to this thread, so the callback runs before `post` returns. */
  const cut = (): void =>
    session.post('Profiler.stop', (error, stopped) => {
      if (error === null) writeFileSync(join(into, `thread${threadId}-${(count += 1)}.cpuprofile`), JSON.stringify(stopped.profile));
    });

  session.connect();
  session.post('Profiler.enable');
  begin();
  process.on('exit', cut);
  if (!isMainThread) return;
  process.on('SIGUSR2', () => {
    cut();
    begin();
  });
}
