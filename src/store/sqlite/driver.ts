/**
 * better-sqlite3, in the release that this Node can run. Both releases have the same API and the
 * same format of files.
 *
 *   Node 20, 22.0 to 22.13   12.9: compiled for one version of Node. From Node 24.19 on, it ends
 *                            the process when a statement is garbage-collected.
 *   Node 22.14 and later     13: uses Node-API 10. A Node without it crashes.
 *
 * npm installs release 13 only where that release runs.
 * https://github.com/WiseLibs/better-sqlite3/releases/tag/v13.0.0
 *
 * Either package may lack its binary: npm ran with --ignore-scripts, or the package's script
 * failed. The package looks for the binary only when it opens a database. So `load` opens a
 * database in memory, and the first thread that loads this file reports why SQLite is missing.
 */
import type Sqlite from 'better-sqlite3';
import { createRequire } from 'node:module';
import { CacheError } from '../../domain/errors.js';

export type Connection = Sqlite.Database;

export type Transaction<F extends (...parameters: never[]) => unknown> = Sqlite.Transaction<F>;

const nodeApiMin = 10;
const require = createRequire(import.meta.url);

export const Database: typeof Sqlite = load();

function load(): typeof Sqlite {
  const isNewer = Number(process.versions['napi']) >= nodeApiMin;
  try {
    const loaded = (isNewer ? require('better-sqlite3-napi') : require('better-sqlite3')) as typeof Sqlite;
    new loaded(':memory:').close();
    return loaded;
  } catch (error) {
    throw new CacheError(explainLoading(error, { isNewer, node: process.version }));
  }
}

/**
 * One line. The original message has a dozen, which list where Node looked for the module or the
 * binary.
 */
export function explainLoading(error: unknown, { isNewer, node }: Readonly<{ isNewer: boolean; node: string }>): string {
  const [why = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
  const needs = isNewer ? '' : ' (before Node 22.14, npm needs a download from GitHub or a compiler, and no --ignore-scripts)';
  return `SQLite cannot be loaded: npm has not installed better-sqlite3 for Node ${node}${needs}: ${why.replace(/[. ]{0,2}Tried:$/, '')}`;
}
