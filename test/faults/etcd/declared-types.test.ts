/**
 * A declared type goes, or goes and comes back, at one server, while another server of the same
 * etcd learns of it later, or stops. Finds acknowledged objects that the late server drops, and
 * objects of a removed type that stay.
 */
import { test } from '../../support/test.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { bytes, members } from './with-members.js';

const declarations = { group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1' };
const instances = { group: 'machines.svm.io', resource: 'instances', version: 'v1', identity: 'h' };
const behindMs = 50;
const rounds = 4;
const objects = 1_000;
const manyShards = 1_000;

function anInstance(name: string): unknown {
  return { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name }, spec: {} };
}

test('what a server acknowledges once a type is back stays, although a server that is behind still drops the type', async (t) => {
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
    // `old` may still be there: it is from before the removal, so it has gone or will go.
    const names = ['a', 'b', 'c'].map((name) => `${name}-${round}`);
    for (const name of names) await created(aPath(instances), anInstance(name));

    // Once `far` answers, it has followed etcd that far, and its stop ends what it removes.
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

for (const ended of ['none', 'near', 'far'] as const)
  test(`no object of a removed type stays, and its watches end after a DELETED for each: of two servers, ${ended} stops meanwhile`, async (t) => {
    const etcd = await members(t);
    if (etcd === undefined) return;
    await using _ = etcd;
    const proxy = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
    t.teardown(() => proxy.close());
    const flags = ['--etcd-prefix=/cache'];
    await using near = await StrataProcess.start({ flags: [...flags, `--etcd-servers=${etcd.endpoints[0]}`] });
    const behind = [...flags, `--etcd-servers=http://127.0.0.1:${proxy.port}`];
    await using far = await StrataProcess.start({ authority: near.authority, flags: behind });
    const client = near.client({ http2: true });
    const asked = etcd.client();
    t.teardown(() => (client.close(), asked.close()));
    await client.create(aPath(declarations), aClusterCachedResource('h'));
    const names = Array.from({ length: objects }, (__, i) => `n${i}`);
    const writers = Array.from({ length: 32 }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) await client.create(aPath(instances), anInstance(name));
    });
    await Promise.all(writers);
    const { resourceVersion = '' } = (await far.client().list(aPath(instances))).metadata;
    const stopped = { none: undefined, near, far }[ended];
    let watching = 0;
    const watchers = [near, far].filter((server) => server !== stopped);
    const watched = watchers.map(async (server) => {
      let deleted = 0;
      const watch = { query: { resourceVersion }, opened: () => void (watching += 1) };
      for await (const { type } of server.client().watch(aPath(instances), watch)) deleted += Number(type === 'DELETED');
      return deleted;
    });
    await until(() => watching === watchers.length);
    proxy.delay(behindMs);
    const left = async (): Promise<number> => {
      const range = { key: bytes('/cache/machines.svm.io/'), rangeEnd: bytes('/cache/machines.svm.io0'), countOnly: true };
      return (await asked.range(range)).count;
    };

    await client.raw('DELETE', aPath({ ...declarations, name: 'instances' }));
    await until(async () => (await left()) < objects);
    await stopped?.stop();
    t.log(`left then: ${await left()}`);

    for (const deleted of await Promise.all(watched)) t.is(deleted, objects);
    t.is(await left(), 0);
  });

test('one server removes the slices of a removed type on many shards, and no other server begins that again', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const flags = ['--etcd-prefix=/cache', `--etcd-servers=${etcd.endpoints[0]}`];
  await using near = await StrataProcess.start({ flags });
  await using far = await StrataProcess.start({ authority: near.authority, flags });
  const client = near.client({ http2: true });
  const asked = etcd.client();
  t.teardown(() => (client.close(), asked.close()));
  await client.create(aPath(declarations), aClusterCachedResource('h'));
  const shards = Array.from({ length: manyShards }, (__, i) => `shard-${i}`);
  const writers = Array.from({ length: 32 }, async () => {
    for (let shard = shards.pop(); shard !== undefined; shard = shards.pop())
      await client.create(aPath({ ...instances, shard }), anInstance('one'));
  });
  await Promise.all(writers);
  const stored = async () =>
    asked.range({ key: bytes('/cache/machines.svm.io/'), rangeEnd: bytes('/cache/machines.svm.io0'), countOnly: true });
  const before = await stored();
  t.is(before.count, manyShards);
  await until(async () => (await far.client().list(aPath({ ...instances, shard: '*' }))).items.length === manyShards);

  await client.raw('DELETE', aPath({ ...declarations, name: 'instances' }));

  await until(async () => (await stored()).count === 0, 30_000);
  const { revision } = await stored();
  t.log(`${revision - before.revision} revisions`);
  t.true(revision - before.revision < 3 * manyShards, `${revision - before.revision} revisions`);
});
