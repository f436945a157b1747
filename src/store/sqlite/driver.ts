/**
 * better-sqlite3, in the release that this Node can run. They have the same API and the same files.
 *
 *   Node 20, 22.0 to 22.13    12.9: compiled for one version of Node at a time, from 24.19 on it ends the process when a statement is collected
 *   Node 22.14 and later      13: by Node-API 10, which earlier ones lack, and then crash in
 *
 * npm installs the second only where it runs. https://github.com/WiseLibs/better-sqlite3/releases/tag/v13.0.0
 */
import type Sqlite from 'better-sqlite3';
import { createRequire } from 'node:module';
import { CacheError } from '../../domain/errors.js';

/** An open database. */
export type Connection = Sqlite.Database;

const nodeApiMin = 10;
const require = createRequire(import.meta.url);

export const Database: typeof Sqlite = load();

function load(): typeof Sqlite {
  const isNewer = Number(process.versions['napi']) >= nodeApiMin;
  try {
    return (isNewer ? require('better-sqlite3-napi') : require('better-sqlite3')) as typeof Sqlite;
  } catch (cause) {
    const why = isNewer ? '' : ', which before Node 22.14 takes a download from GitHub or a compiler';
    throw new CacheError(`SQLite cannot be loaded: npm has not installed better-sqlite3 for Node ${process.version}${why}`, { cause });
  }
}
