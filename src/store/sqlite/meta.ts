/** The table `meta`: one value for each fact about this store's life. */
import type { Connection } from './database.js';

export function readCacheId(database: Connection): string {
  return String(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = 'cache_id'`).pluck().get());
}

export function hasCacheId(database: Connection): boolean {
  return database.prepare(/*sql*/ `SELECT 1 FROM meta WHERE name = 'cache_id'`).get() !== undefined;
}

export function readMeta(database: Connection, name: string): number {
  return Number(database.prepare(/*sql*/ `SELECT value FROM meta WHERE name = ?`).pluck().get(name));
}
