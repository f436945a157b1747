/**
 * The reading connection, which reports damage: the reader gets the error, and the store ends, so that nothing more of it is
 * served. The start that follows finds a store that was not closed, and checks it.
 */
import { isDamage } from './damage.js';
import { openReader, type Connection } from './database.js';

type Read = (...parameters: unknown[]) => unknown;

/** `damaged` is called for each read that meets damage, within it. */
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
