import { once } from 'node:events';
import { closeSync, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from './test.js';
import { spawn } from './children.js';
import { freeze, thaw } from './freeze.js';
import { until } from './test-server.js';

/** Four threads that write as fast as they can; each writes its argument, this text. */
const writers = `
const { writeSync } = require('node:fs');
const { isMainThread, Worker } = require('node:worker_threads');
if (isMainThread) for (let i = 0; i < 3; i += 1) new Worker(process.argv[1], { eval: true });
for (;;) writeSync(1, '.');
`;

test('no thread of a frozen process does anything until it goes on', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'freeze-'));
  const written = openSync(join(folder, 'written'), 'a');
  const child = spawn(process.execPath, ['-e', writers, writers], { stdio: ['ignore', written, 'inherit'] });
  t.teardown(() => {
    child.kill('SIGKILL');
    closeSync(written);
    rmSync(folder, { recursive: true });
  });
  const bytes = (): number => fstatSync(written).size;
  await until(() => bytes() > 0);

  for (let round = 0; round < 20; round += 1) {
    await freeze(child.pid!);
    const before = bytes();
    // The pid of a process that does not run; `kill` would signal every process of our own group.
    t.throws(() => thaw(0), { message: /does not run/ });
    await sleep(20);
    t.is(bytes(), before);
    thaw(child.pid!);
    await until(() => bytes() > before);
  }

  child.kill('SIGKILL');
  await once(child, 'exit');
  await t.throwsAsync(freeze(child.pid!), { code: 'ESRCH' });
});
