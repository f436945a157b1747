/** For tests of what is still held: a full collection at once, whatever flags the process was started with. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

export const collectGarbage = runInNewContext('gc') as () => void;
