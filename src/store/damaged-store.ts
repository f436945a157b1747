/**
 * The store was found damaged at opening. The server serves nothing from it until an operator acts
 * (src/server/damaged-server.ts).
 */
import { CacheError } from '../domain/errors.js';

/** `file`: the path of the damaged database. */
export class DamagedStore extends CacheError {
  readonly file: string;
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`the store is damaged (${problem}); the damaged file is ${file}`);
    this.file = file;
    this.problem = problem;
  }
}

/** Turns a rejection with DamagedStore into a result. */
export async function unlessDamaged<T>(opening: Promise<T>): Promise<T | DamagedStore> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof DamagedStore) return error;
    throw error;
  }
}

/** The result of one step of a check. `examined`: how many rows or keys the step read. */
export type CheckResult = Readonly<{ what: string; examined: number; problems: readonly string[] }>;

/** A step reports at most this many problems, and does not count the rest. */
export const problemsMax = 20;
