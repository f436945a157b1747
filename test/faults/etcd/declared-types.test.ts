/** Declared types that go and come back at one server, while another server of the same etcd learns of it later. */
import { test } from '../../support/test.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { members } from './with-members.js';

const declarations = { group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1' };
const instances = { group: 'machines.svm.io', resource: 'instances', version: 'v1', identity: 'h' };
const behindMs = 50;
const rounds = 4;

function anInstance(name: string): unknown {
  return { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name }, spec: {} };
}

test('what one server acknowledges once a type is back stays, though another one, which is behind, drops it for the type that went', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const flags = ['--etcd-prefix=/cache'];
  await using near = await StrataProcess.start({ flags: [...flags, `--etcd-servers=${etcd.endpoints[0]}`] });
  const client = near.client();
  t.teardown(() => client.close());
  const created = async (path: string, object: unknown): Promise<void> =>
    void t.is((await client.raw('POST', path, { body: object })).status, 201);

  for (let round = 1; round <= rounds; round += 1) {
    const proxy = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
    t.teardown(() => proxy.close());
    await using far = await StrataProcess.start({
      authority: near.authority,
      flags: [...flags, `--etcd-servers=http://127.0.0.1:${proxy.port}`],
    });
    await created(aPath(declarations), aClusterCachedResource('h'));
    await created(aPath(instances), anInstance('old'));
    proxy.delay(behindMs);

    await client.raw('DELETE', aPath({ ...declarations, name: 'instances' }));
    await created(aPath(declarations), aClusterCachedResource('h'));
    // The drop at this server may have left it: it is one of before, and goes, or has gone.
    const names = ['a', 'b', 'c'].map((name) => `${name}-${round}`);
    for (const name of names) await created(aPath(instances), anInstance(name));

    // It has heard of all that by the answer, and its stop ends what it removes.
    await far.client().list(aPath(instances));
    await far.stop();
    const { items } = await client.list(aPath(instances));
    const left = items.map(({ metadata }) => metadata.name);
    t.deepEqual(
      names.filter((name) => !left.includes(name)),
      [],
      `round ${round}`,
    );
    await client.raw('DELETE', aPath({ ...declarations, name: 'instances' }));
    await proxy.close();
  }
});
