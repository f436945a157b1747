/** The command line of the benchmark. */
import { parseArgs } from 'node:util';

/**
 * Objects that the question `create` creates and deletes again, in addition to those of all
 * targets.
 */
export const createdObjects = 3_000;

export class UsageError extends Error {}

export type BenchOptions = Readonly<{
  objects: number;
  rounds: number;
  /** Requests of the Go client under way at once. */
  workers: number;
  watchers: number;
  measuredMs: number;
  warmUpMs: number;
  settleMs: number;
}>;

export type Flags = ReturnType<typeof parseFlags>;

export function parseFlags() {
  try {
    return parseArgs({
      options: {
        /** Names of questions and families. */
        only: { type: 'string' },
        all: { type: 'boolean', default: false },
        objects: { type: 'string', default: '10000' },
        rounds: { type: 'string', default: '3' },
        workers: { type: 'string', default: '16' },
        watchers: { type: 'string', default: '32' },
        'measured-ms': { type: 'string', default: '1500' },
        'warm-up-ms': { type: 'string', default: '500' },
        'settle-seconds': { type: 'string', default: '10' },
        /**
         * The URL, without a path, of another server of the API, which is asked the same questions
         * in turns. The next four flags are the CA and the credentials for it.
         */
        against: { type: 'string' },
        ca: { type: 'string' },
        cert: { type: 'string' },
        key: { type: 'string' },
        token: { type: 'string' },
        /**
         * The other server's process, if it runs on this machine, for its processor time and
         * memory.
         */
        'against-pid': { type: 'string' },
        /** The name of the other server in the table and the pictures. */
        'against-name': { type: 'string', default: 'the other' },
        flag: { type: 'string', multiple: true, default: [] },
        /** A folder for V8 CPU profiles of the measured server. */
        profile: { type: 'string' },
        out: { type: 'string' },
        /** A folder for one picture of each family. */
        svg: { type: 'string' },
        /** A page. The table of this run replaces its part between the marks of the benchmark. */
        page: { type: 'string' },
        /** The JSON of an earlier run. Only its pages and pictures are made. */
        from: { type: 'string' },
        strict: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

type CountName = 'objects' | 'rounds' | 'workers' | 'watchers' | 'measured-ms' | 'warm-up-ms' | 'settle-seconds';

export function readOptions(flags: Flags): BenchOptions {
  const count = (name: CountName): number => parseCount(name, flags[name]);
  return {
    objects: count('objects'),
    rounds: count('rounds'),
    workers: count('workers'),
    watchers: count('watchers'),
    measuredMs: count('measured-ms'),
    warmUpMs: count('warm-up-ms'),
    settleMs: count('settle-seconds') * 1_000,
  };
}

export function parseCount(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new UsageError(`--${name} must be a whole number above 0`);
  return value;
}
