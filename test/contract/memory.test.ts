/** The memory engine that simulations run on: it is held to the same suites as the one that ships. */
import { openMemory } from './open-memory.js';
import { registerKeptContract } from './kept-contract.js';
import { registerLinksContract } from './links-contract.js';
import { registerPushContract } from './push-contract.js';
import { registerStoreContract } from './store-contract.js';

registerStoreContract(openMemory);
registerPushContract(openMemory);
registerLinksContract(openMemory);
registerKeptContract(openMemory);
