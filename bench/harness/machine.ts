/** The machine of a run. Compare figures only with those of the same machine in the same hour. */
import { Database } from '../../src/store/sqlite/driver.js';
import { cpus, loadavg, release, totalmem } from 'node:os';

export type Machine = Readonly<{
  processor: string;
  cores: number;
  memoryGib: number;
  kernel: string;
  node: string;
  sqlite: string;
  loadBefore: number;
}>;

const gib = 1024 ** 3;

export function describeMachine(): Machine {
  const processors = cpus();
  return {
    processor: processors[0]?.model ?? 'unknown',
    cores: processors.length,
    memoryGib: Math.round(totalmem() / gib),
    kernel: release(),
    node: process.version,
    sqlite: sqliteVersion(),
    loadBefore: loadavg()[0] ?? 0,
  };
}

function sqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    return String(database.prepare('SELECT sqlite_version()').pluck().get());
  } finally {
    database.close();
  }
}
