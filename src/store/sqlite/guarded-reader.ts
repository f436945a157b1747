/**
 * A read-only connection that reports damage. A read that meets damage throws, and the store ends,
 * so that it serves nothing more. The next start finds a store that was not closed, and checks it.
 */
import { isDamage } from './damage.js';
import { openReader, type Connection } from './database.js';

type Read = (...parameters: unknown[]) => unknown;

/** Each read that meets damage calls `damaged` before it throws. */
export function openGuardedReader(file: string, damaged: (error: Error) => void): Connection {
  const reader = openReader(file);
  const prepare = reader.prepare.bind(reader);
  const guarded =
    (read: Read): Read =>
    (...parameters) => {
      try {
        return read(...parameters);
      } catch (error) {
        if (isDamage(error)) damaged(error);
        throw error;
      }
    };
  const prepareGuarded = (sql: string): unknown => {
    const statement = prepare(sql);
    const { get, all } = statement;
    return Object.assign(statement, { get: guarded(get.bind(statement) as Read), all: guarded(all.bind(statement) as Read) });
  };
  return Object.assign(reader, { prepare: prepareGuarded as Connection['prepare'] });
}
