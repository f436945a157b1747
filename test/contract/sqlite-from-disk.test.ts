/** The SQLite engine with nothing in memory: every content is read from its row, so a missing row shows. */
import { openSqlite } from './open-sqlite.js';
import { registerLinksContract } from './links-contract.js';
import { registerPushContract } from './push-contract.js';
import { registerStoreContract } from './store-contract.js';

registerStoreContract(openSqlite(0));
registerPushContract(openSqlite(0));
registerLinksContract(openSqlite(0));
