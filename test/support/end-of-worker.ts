/**
 * Ends a worker of AVA that has run all of its tests but does not exit: a failed test left a
 * server, a socket or a timer open. AVA would wait for it as long as the lane may take, and print
 * the failure only then. Every configuration of AVA requires this file.
 */
import { writeSync } from 'node:fs';
import { registerCompletionHandler } from 'ava';

/**
 * What closes by itself takes less, even beside ten other processes: a snapshot kept for another
 * reader, a call that times out.
 */
const patienceMs = Number(process.env['TEST_PATIENCE_MS'] ?? 20_000);
const stderr = 2;

registerCompletionHandler(() => {
  const open = (): void => {
    // Written synchronously: a worker that exits loses what its stream has not written.
    writeSync(stderr, `\nThe tests are over and something is left open: ${process.getActiveResourcesInfo().join(', ')}\n`);
    process.exit(1);
  };
  setTimeout(open, patienceMs).unref();
});

// As `src/main.ts` does: Node 20 sometimes spins for ever while it frees what connections left.
process.once('beforeExit', () => process.exit());
