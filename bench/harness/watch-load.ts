/** What questions about watches have in common: which objects are written, what is watched, and what every watcher must see. */
import type { GoJob } from './go-job.js';
import type { Loaded } from './go-client.js';
import { collectionPath, exportsType } from './mixed-objects.js';
import { check, type Check } from './question.js';

/** Fewer than a run has: each is read once first. */
const writtenMax = 1_000;

/** Updates of exports, all of which a wildcard watch of exports sees. */
export function writesOfExports(objects: number, max = writtenMax): Pick<GoJob, 'from' | 'to' | 'resources' | 'paths'> {
  return { from: 0, to: Math.min(objects, max), resources: [exportsType.resource], paths: [collectionPath(exportsType)] };
}

export function watchChecks({ expected, watchersLess, unordered }: Loaded): readonly Check[] {
  return [
    check('every watcher sees every update once (G3, G4)', watchersLess === 0, `${watchersLess} watchers saw others than the ${expected}`),
    check('events come in rising revision (G2)', unordered === 0, `${unordered} do not`),
  ];
}
