/**
 * A type of `--types-file` that changes at a shard's agent before it changes at the cache. The
 * tests would find objects that stay refused once both files agree.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aTree } from '../../support/test-tree.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { pushing } from './pushing.js';

const widgets = (versions: readonly string[], scope = 'Cluster'): string =>
  JSON.stringify({
    types: [
      {
        group: 'x.io',
        plural: 'widgets',
        kind: 'Widget',
        scope,
        replicated: 'always',
        versions: versions.map((name) => ({ name })),
      },
    ],
  });

for (const [how, between] of [
  ['', undefined],
  [', though the cache has read a file without the type in between', '{}'],
] as const)
  test(`a version that the agent reads before the cache serves it arrives whole once the cache serves it${how}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const [atCache, atAgent] = [join(folder, 'cache.yaml'), join(folder, 'agent.yaml')];
    await Promise.all([atCache, atAgent].map((file) => writeFile(file, widgets(['v1']))));
    const server = await aServer(t, { flags: { 'types-file': atCache, 'policy-poll': '100ms' } });
    const shard = await ShardStandIn.start();
    t.teardown(() => shard.close());
    const serves = (version: string): void =>
      shard.store.serve({ group: 'x.io', version, resource: 'widgets', kind: 'Widget', identity: '' });
    serves('v1');
    shard.store.put('widgets.x.io', 'acme', { metadata: { name: 'one' } });
    pushing(t, server, { shard, typesFile: atAgent });
    await until(async () => (await namesAt(server, 'v1')).join() === 'one');

    serves('v2');
    await writeFile(atAgent, widgets(['v2', 'v1']));
    await until(() => server.logged.some(({ event }) => event === 'push.refused'));
    shard.store.put('widgets.x.io', 'acme', { metadata: { name: 'two' } });
    if (between !== undefined) {
      await writeFile(atCache, between);
      await until(() => server.logged.some(({ event }) => event === 'types.reloaded'));
    }
    await writeFile(atCache, widgets(['v2', 'v1']));

    await until(async () => (await namesAt(server, 'v2')).join() === 'one,two');
    t.pass();
  });

test('a type that changes its scope at one end of a link first arrives whole once both ends agree', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [atRoot, atLeaf] = [join(folder, 'root.yaml'), join(folder, 'leaf.yaml')];
  await Promise.all([atRoot, atLeaf].map((file) => writeFile(file, widgets(['v1']))));
  const tree = await aTree(t);
  const flagsOf = (file: string) => ({ 'types-file': file, 'policy-poll': '100ms' });
  const root = await tree.cache('root', { flags: flagsOf(atRoot) });
  const leaf = await tree.cache('leaf', { parent: root, flags: flagsOf(atLeaf) });
  const pusher = await RawPusher.open(leaf);
  const slice = sliceOf('widgets', { group: 'x.io' });
  const pushed = (name: string, namespace?: string) =>
    pushedObject({ apiVersion: 'x.io/v1', kind: 'Widget', metadata: { name, uid: name, ...(namespace !== undefined && { namespace }) } });
  await pusher.syncWhole(slice, [pushed('one')], 'v1');
  await until(async () => (await namesAt(root, 'v1')).join() === 'one');

  await writeFile(atLeaf, widgets(['v1'], 'Namespaced'));
  await until(() => leaf.logged.some(({ event }) => event === 'types.reloaded'));
  await pusher.syncWhole(slice, [pushed('two', 'default')], 'v1');
  await until(() => root.logged.some(({ event }) => event === 'link.refused-here'));
  await writeFile(atRoot, widgets(['v1'], 'Namespaced'));

  await until(async () => (await namesAt(root, 'v1')).join() === 'two');
  t.pass();
});

test('a type keeps its scope while a plain writer’s object of it is stored: at a reload, once its entry has been away, and at a start', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'types.yaml');
  const flags = { 'types-file': file, 'policy-poll': '100ms' };
  await writeFile(file, widgets(['v1']));
  const server = await aServer(t, { flags });
  const client = server.client();
  const collection = (version: string) => `/services/cache/shards/amber/clusters/acme/apis/x.io/${version}/widgets`;
  const widget = { apiVersion: 'x.io/v1', kind: 'Widget', metadata: { name: 'one' } };
  await client.create(collection('v1'), widget);
  const refusal = /widgets\.x\.io must keep the scope Cluster while the shard amber, which has no agent, has objects of it/;
  const refused = () =>
    server.logged.filter(
      ({ event, fields }) => event === 'types.reload-failed' && refusal.test(String((fields as { error: Error }).error)),
    );
  const reloaded = () => server.logged.filter(({ event }) => event === 'types.reloaded').length;

  await writeFile(file, widgets(['v1', 'v2'], 'Namespaced'));
  await until(() => refused().length > 0);
  t.is((await client.raw('GET', `${collection('v1')}/one`)).status, 200);
  t.is((await client.raw('GET', collection('v2'))).status, 404, 'the rest of the file is refused too');
  await writeFile(file, '{}');
  await until(() => reloaded() === 1);
  const before = refused().length;
  await writeFile(file, widgets(['v1'], 'Namespaced'));
  await until(() => refused().length > before);
  await t.throwsAsync(server.restart({ flags }), { message: refusal });

  await writeFile(file, widgets(['v1']));
  const again = await server.restart({ flags });
  t.teardown(() => again.close());
  await again.client().delete(`${collection('v1')}/one`);
  await writeFile(file, widgets(['v1'], 'Namespaced'));
  await until(
    async () => (await again.client().raw('GET', collection('v1').replace('/widgets', '/namespaces/default/widgets'))).status === 200,
  );
});

async function namesAt(server: TestServer, version: string): Promise<readonly string[]> {
  const { text } = await server.client().raw('GET', `/services/cache/shards/*/clusters/*/apis/x.io/${version}/widgets`);
  return ((JSON.parse(text) as { items?: { metadata: { name: string } }[] }).items ?? []).map(({ metadata }) => metadata.name);
}
