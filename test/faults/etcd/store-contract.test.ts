/** The contract that every store keeps, on the etcd engine and a real etcd. */
import { test } from '../../support/test.js';
import { registerStoreContract } from '../../contract/store-contract.js';
import { whyNoEtcd } from './etcd-program.js';
import { openEtcdWith } from './etcd-engine.js';

const why = whyNoEtcd();

if (why !== undefined)
  test('the store contract', (t) => {
    t.log(`skipped: ${why}`);
    t.pass();
  });
else registerStoreContract(openEtcdWith({}));
