/**
 * Loaded into a measured server (node --import): collects all garbage at every SIGUSR2. V8 keeps
 * tens of megabytes of garbage in an idle server, so memory that the server really holds shows only
 * after a collection.
 */
import { isMainThread } from 'node:worker_threads';
import { collectGarbage } from '../../test/support/collect-garbage.js';

if (isMainThread) process.on('SIGUSR2', () => collectGarbage());

/** The environment that loads this file. */
export const collecting = { NODE_OPTIONS: `--import=${import.meta.url}` };
