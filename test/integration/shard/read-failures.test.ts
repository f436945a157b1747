import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { CacheError } from '../../../src/domain/errors.js';
import { failureFields, KubeRefusal } from '../../../src/kube/kube-client.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { aFolder } from './a-kubeconfig.js';
import { anAgentWith } from './an-agent.js';

test('a CA that did not sign the certificate of the shard is reported with the shard and the kubeconfig, and without a stack', async (t) => {
  const folder = await aFolder(t);
  await mkdir(join(folder, 'ca'));
  const [shard, authority] = await Promise.all([ShardStandIn.start(), new TestAuthority(join(folder, 'ca'))]);
  const path = join(folder, 'shard.kubeconfig');
  const ca = (await readFile(authority.certificateFile)).toString('base64');
  await writeFile(path, shard.kubeconfigText({ token: 'any' }, { 'certificate-authority-data': ca }));

  const rig = await anAgentWith(t, shard, path);
  await until(() => rig.events('source.read.failed').length > 0);

  for (const { fields } of rig.events('source.read.failed')) {
    t.true(
      String(fields['why']).startsWith(
        `the certificate that ${shard.url} shows is not one that a CA in ${path}: the certificate-authority-data signed`,
      ),
      String(fields['why']),
    );
    t.is(fields['error'], undefined);
  }
});

test('an error caused by a server or a network is logged without a stack, and a bug with its stack', (t) => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
  const bug = new TypeError('undefined is not a function');

  t.deepEqual(failureFields(refused), { why: 'connect ECONNREFUSED 127.0.0.1:1' });
  t.deepEqual(failureFields(new CacheError('cannot read a', { cause: refused })), {
    why: 'cannot read a: connect ECONNREFUSED 127.0.0.1:1',
  });
  t.deepEqual(failureFields(new KubeRefusal(403, 'Forbidden', 'no')), { why: 'no', status: 403, reason: 'Forbidden' });
  t.deepEqual(failureFields(bug), { error: bug });
});
