/**
 * V8 collects SQLite's statements some 8 s after the last allocation, while it is in no context of
 * Node's. Finds a process that this ends, as better-sqlite3 before 13 did from Node 24.19 on.
 */
import { test } from '../../support/test.js';
import { runProgram } from '../../clients/installed.js';

const idleMs = 20_000;
const statements = 20_000;

test(`${statements.toLocaleString('en')} statements are collected while the process is idle, and the process goes on`, async (t) => {
  t.timeout(idleMs * 3);
  const driver = new URL('../../../src/store/sqlite/driver.js', import.meta.url).href;
  const program = `
    const { Database } = await import(${JSON.stringify(driver)});
    const database = new Database(':memory:');
    const kept = [];
    for (let i = 0; i < ${statements}; i++) {
      database.pragma('page_count');
      kept.push(new Array(50).fill(i));
    }
    kept.length = 0;
    setTimeout(() => console.log('idle all along', database.pragma('page_size', { simple: true })), ${idleMs});
  `;

  const { code, stdout, stderr } = await runProgram(process.execPath, ['--input-type=module', '-e', program], { timeoutMs: idleMs * 2 });

  t.is(code, 0, stderr.slice(0, 500));
  t.is(stdout, 'idle all along 4096\n');
});
