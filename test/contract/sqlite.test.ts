/**
 * The SQLite engine as it runs, with recent objects in memory. `sqlite-from-disk.test.ts` runs the
 * same suites without that memory.
 */
import { storeLimits } from '../support/test-store.js';
import { openSqlite } from './open-sqlite.js';
import { registerKeptContract } from './kept-contract.js';
import { registerLinksContract } from './links-contract.js';
import { registerPushContract } from './push-contract.js';
import { registerStoreContract } from './store-contract.js';

const open = openSqlite(storeLimits.recentBytesMax);
registerStoreContract(open);
registerPushContract(open);
registerLinksContract(open);
registerKeptContract(open);
