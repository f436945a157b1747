import type { ExecutionContext } from 'ava';
import { SqliteEngine } from '../support/store/sqlite-engine.js';
import type { Engine, EngineBounds } from './store-contract.js';

export function openSqlite(recentBytesMax: number): (t: ExecutionContext, bounds: EngineBounds) => Promise<Engine> {
  return (t, { changesMax, tombstonesMax, mutationsMax, pageRowsMax, pageBytesMax, keptNames }) =>
    SqliteEngine.start(t, {
      history: {
        ...(changesMax === undefined ? {} : { historyChangesMax: changesMax }),
        ...(tombstonesMax === undefined ? {} : { tombstonesMax }),
      },
      queue: mutationsMax === undefined ? {} : { mutationsMax },
      snapshot: {
        ...(pageRowsMax === undefined ? {} : { rowsMax: pageRowsMax }),
        ...(pageBytesMax === undefined ? {} : { bytesMax: pageBytesMax }),
      },
      recentBytesMax,
      ...(keptNames && { keptNames }),
    });
}
