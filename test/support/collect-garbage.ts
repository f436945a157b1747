/**
 * Runs a full garbage collection at once, whatever flags the process has: for tests of what is
 * still referenced.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

export const collectGarbage = runInNewContext('gc') as () => void;
