/**
 * Shared by the questions about watches: the objects that are written, what is watched, and what
 * every watcher must see.
 */
import type { GoJob } from './go-job.js';
import type { Loaded } from './go-client.js';
import { collectionPath, exportsType } from './mixed-objects.js';
import { check, type Check } from './question.js';

/** Limited, because the client first reads each object once. */
const writtenMax = 1_000;
const lateMs = 60_000;
const measuredTimes = 2;

/** Updates of exports, which a wildcard watch of exports sees. */
export function writesOfExports(objects: number, max = writtenMax): Pick<GoJob, 'from' | 'to' | 'resources' | 'paths'> {
  return { from: 0, to: Math.min(objects, max), resources: [exportsType.resource], paths: [collectionPath(exportsType)] };
}

type Pace = Readonly<{ objects: number; http1: boolean; watchers: number; perSecond: number; measuredMs: number }>;

/**
 * Updates of exports at a steady pace, with watchers of all exports. It measures twice as long as
 * other questions.
 */
export function pacedWrites({ objects, http1, watchers, perSecond, measuredMs }: Pace): GoJob {
  return {
    ...writesOfExports(objects),
    kind: 'watches',
    http1,
    clients: watchers,
    perSecond,
    measuredMs: measuredMs * measuredTimes,
    lateMs,
  };
}

export function watchChecks({ expected, watchersLess, unordered }: Loaded): readonly Check[] {
  return [
    check('every watcher sees every update once (G3, G4)', watchersLess === 0, `${watchersLess} watchers saw others than the ${expected}`),
    check('events come in rising revision (G2)', unordered === 0, `${unordered} do not`),
  ];
}
