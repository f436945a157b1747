/**
 * `--types-file` at a cache and at a shard's agent, both started as an operator does, while the
 * files change. The tests would find a type that one of them uses only after a restart, and a watch
 * of a removed type that does not end. It would also find objects that stay though nobody
 * replicates them any more.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deferred } from '../../../src/domain/base/promises.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { documentedYaml } from '../../support/documented-yaml.js';
import { test } from '../../support/test.js';
import { pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { pushing } from './pushing.js';

const slices = { group: 'cache.kcp.io', version: 'v1alpha1', resource: 'replicationendpointslices', kind: 'ReplicationEndpointSlice' };
const listed = '/services/cache/shards/*/clusters/*/apis/cache.kcp.io/v1alpha1/replicationendpointslices';
/** JSON is valid YAML. */
const added = JSON.stringify(documentedYaml('kcp.md', 'plural: replicationendpointslices'));

test('a type of the file is replicated and served once cache and agent have it, and ends when they drop it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [atCache, atAgent] = [join(folder, 'cache.yaml'), join(folder, 'agent.yaml')];
  await Promise.all([writeFile(atCache, ''), writeFile(atAgent, added)]);
  const server = await aServer(t, { flags: { 'types-file': atCache, 'policy-poll': '100ms' } });
  const client = server.client();
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  shard.store.serve({ ...slices, identity: '' });
  shard.store.put('replicationendpointslices.cache.kcp.io', 'acme', { metadata: { name: 'one' }, spec: { export: { name: 'widgets' } } });
  pushing(t, server, { shard, typesFile: atAgent });

  const status = async (): Promise<number> => (await client.raw('GET', listed)).status;
  await until(async () => (await unknownTypesOf(server)).length > 0);
  t.deepEqual(await unknownTypesOf(server), ['replicationendpointslices.cache.kcp.io']);
  t.is(await status(), 404);

  await writeFile(atCache, added);
  await until(async () => (await status()) === 200 && (await namesAt(server)).length === 1);
  const { text } = await client.raw('GET', listed, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } });
  t.deepEqual(await unknownTypesOf(server), []);
  t.deepEqual(JSON.parse(text).rows[0].cells, ['one', 'amber', 'acme', 'widgets']);
  shard.store.put('replicationendpointslices.cache.kcp.io', 'acme', { metadata: { name: 'two' }, spec: { export: { name: 'widgets' } } });
  await until(async () => (await namesAt(server)).length === 2);

  const opened = deferred<void>();
  const watched = toItsEnd(client.watch(listed, { opened: () => opened.resolve() }));
  await opened.promise;
  await writeFile(atCache, 'types: []');
  await until(async () => (await status()) === 404);
  t.is(await watched, 2);
  await writeFile(atCache, added);
  await until(async () => (await status()) === 200 && (await namesAt(server)).length === 2);

  await writeFile(atAgent, added.replace('always', 'annotated'));
  await until(async () => (await namesAt(server)).length === 0);
  shard.store.put('replicationendpointslices.cache.kcp.io', 'acme', {
    metadata: { name: 'three', annotations: { 'internal.kcp.io/replicate': 'true' } },
  });
  await until(async () => (await namesAt(server)).join() === 'three');
  await writeFile(atAgent, added);
  await until(async () => (await namesAt(server)).length === 3);

  await writeFile(atAgent, '{}');
  await until(async () => (await namesAt(server)).length === 0);
});

test('objects of a type that only one end of a link has wait there, in both directions, until the other end has it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [atRoot, atLeaf] = [join(folder, 'root.yaml'), join(folder, 'leaf.yaml')];
  for (const [whereFrom, knowing, unknowing] of [
    ['root', atRoot, atLeaf],
    ['leaf', atLeaf, atRoot],
  ] as const) {
    await Promise.all([writeFile(knowing, added), writeFile(unknowing, '')]);
    const tree = await aTree(t);
    const flagsOf = (file: string) => ({ 'types-file': file, 'policy-poll': '100ms' });
    const root = await tree.cache('root', { flags: flagsOf(atRoot) });
    const leaf = await tree.cache('leaf', { parent: root, flags: flagsOf(atLeaf) });
    const [from, to] = whereFrom === 'root' ? [root, leaf] : [leaf, root];
    const pusher = await RawPusher.open(from);
    const one = { apiVersion: 'cache.kcp.io/v1alpha1', kind: slices.kind, metadata: { name: 'one', uid: 'u1' } };
    await pusher.sync(sliceOf(slices.resource, { group: slices.group }), [pushedObject(one)], slices.version);

    await until(async () => (await unknownTypesOf(to)).length > 0);
    t.deepEqual(await unknownTypesOf(to), ['replicationendpointslices.cache.kcp.io']);
    t.is((await to.client().raw('GET', listed)).status, 404);
    await writeFile(unknowing, added);
    await until(async () => (await namesAt(to)).length === 1);
    t.deepEqual(await unknownTypesOf(to), []);
  }
});

async function unknownTypesOf(server: TestServer): Promise<readonly string[]> {
  const { shards } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find(({ shard }) => shard === 'amber')?.unknownTypes ?? [];
}

async function namesAt(server: TestServer): Promise<readonly string[]> {
  const { items = [] } = JSON.parse((await server.client().raw('GET', listed)).text) as { items?: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}

/** The number of events until the watch ended. */
async function toItsEnd(watch: AsyncIterable<unknown>): Promise<number> {
  let events = 0;
  for await (const _ of watch) events += 1;
  return events;
}
