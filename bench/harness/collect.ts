/**
 * Loaded into a measured server (node --import): a full collection of garbage at every SIGUSR2. V8 leaves tens of megabytes of garbage in a server that rests, so
 * that what a server keeps is seen only behind one.
 */
import { isMainThread } from 'node:worker_threads';
import { collectGarbage } from '../../test/support/collect-garbage.js';

if (isMainThread) process.on('SIGUSR2', () => collectGarbage());

/** What has it loaded. */
export const collecting = { NODE_OPTIONS: `--import=${import.meta.url}` };
