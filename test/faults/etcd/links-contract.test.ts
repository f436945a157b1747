/** The contract that every store keeps for links, on the etcd engine and a real etcd. */
import { test } from '../../support/test.js';
import { registerLinksContract } from '../../contract/links-contract.js';
import { whyNoEtcd } from './etcd-program.js';
import { openEtcdWith } from './etcd-engine.js';

const why = whyNoEtcd();

if (why !== undefined)
  test('the links contract', (t) => {
    t.log(`skipped: ${why}`);
    t.pass();
  });
else registerLinksContract(openEtcdWith({}));
