import { SqliteEngine } from '../store/sqlite-engine.js';
import { registerStoreContract } from './store-contract.js';

registerStoreContract((t, { changesMax, tombstonesMax, mutationsMax, pageRowsMax, pageBytesMax }) =>
  SqliteEngine.start(t, {
    history: { ...(changesMax === undefined ? {} : { historyChangesMax: changesMax }), ...(tombstonesMax === undefined ? {} : { tombstonesMax }) },
    queue: mutationsMax === undefined ? {} : { mutationsMax },
    snapshot: { ...(pageRowsMax === undefined ? {} : { rowsMax: pageRowsMax }), ...(pageBytesMax === undefined ? {} : { bytesMax: pageBytesMax }) },
  }),
);
