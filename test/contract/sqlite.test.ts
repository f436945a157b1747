/** The SQLite engine as it runs, with recent objects in memory. `sqlite-from-disk.test.ts` runs the same suite without. */
import { storeLimits } from '../support/test-store.js';
import { openSqlite } from './open-sqlite.js';
import { registerStoreContract } from './store-contract.js';

registerStoreContract(openSqlite(storeLimits.recentBytesMax));
