/**
 * Ends a worker of AVA that has run all of its tests and still does not end, because a failed test has left something open: a server, a socket, a timer. AVA would
 * wait for it as long as the lane may take, and print no reason before that. Every configuration of AVA requires this file.
 */
import { writeSync } from 'node:fs';
import { registerCompletionHandler } from 'ava';

/** What closes by itself takes less, also beside ten other processes: a snapshot that is kept for another reader, a call whose time runs out. */
const patienceMs = Number(process.env['TEST_PATIENCE_MS'] ?? 20_000);
const stderr = 2;

registerCompletionHandler(() => {
  const open = (): void => {
    // Written at once: what a worker writes to its stream is lost when it exits.
    writeSync(stderr, `\nThe tests are over and something is left open: ${process.getActiveResourcesInfo().join(', ')}\n`);
    process.exit(1);
  };
  setTimeout(open, patienceMs).unref();
});
