/**
 * The contracts on a SQLite engine without bodies in memory: it reads each from its row, so a
 * missing row shows.
 */
import { openSqlite } from '../../contract/open-sqlite.js';
import { registerLinksContract } from '../../contract/links-contract.js';
import { registerPushContract } from '../../contract/push-contract.js';
import { registerStoreContract } from '../../contract/store-contract.js';

registerStoreContract(openSqlite(0));
registerPushContract(openSqlite(0));
registerLinksContract(openSqlite(0));
