/** A store that was found damaged as it was opened: nothing of it is served until an operator has acted (src/stand-aside.ts). */
import { CacheError } from '../domain/errors.js';

/** `file`: where the damaged database lies now. */
export class DamagedStore extends CacheError {
  readonly file: string;
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`the store is damaged (${problem}); it lies in ${file}`);
    this.file = file;
    this.problem = problem;
  }
}

/** What was opened, or the damage that kept it from opening. */
export async function unlessDamaged<T>(opening: Promise<T>): Promise<T | DamagedStore> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof DamagedStore) return error;
    throw error;
  }
}
