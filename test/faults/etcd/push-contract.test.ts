/** The contracts that every store keeps for pushers, on the etcd engine and a real etcd. */
import { test } from '../../support/test.js';
import { registerKeptContract } from '../../contract/kept-contract.js';
import { registerPushContract } from '../../contract/push-contract.js';
import { whyNoEtcd } from './etcd-program.js';
import { openEtcdWith } from './etcd-engine.js';

const why = whyNoEtcd();

if (why !== undefined)
  test('the push contract', (t) => {
    t.log(`skipped: ${why}`);
    t.pass();
  });
else {
  registerPushContract(openEtcdWith({}));
  registerKeptContract(openEtcdWith({}));
}
