/**
 * Objects that a migration leaves on the former shard: plain writers write as kcp does before and
 * after a migration, and a minute later the cache removes the objects.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const clusters = { group: 'core.kcp.io', resource: 'logicalclusters', version: 'v1alpha1' };
const migrations = { group: 'migration.kcp.io', resource: 'logicalclustermigrations', version: 'v1alpha1' };
/** How often the server looks for such objects. */
const lookMs = 5_000;
/** Long enough for the server to remove them. */
const afterMs = 75_000;

/** `by`: the LogicalClusterMigration that the mark names. */
type Marked = Readonly<{ isMarked?: boolean; uid?: string; by?: string }>;

function aLogicalCluster({ isMarked = false, uid = 'uid-1', by = 'org1:one' }: Marked): object {
  const annotations = { 'cache.kcp.io/original-resource-UID': uid, ...(isMarked && { 'internal.kcp.io/migrating': by }) };
  return { apiVersion: 'core.kcp.io/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'cluster', annotations }, spec: {} };
}

async function migrate(client: KubeClient, to: string, { logicalCluster = 'acme', name = 'one', shard = 'cedar' } = {}): Promise<void> {
  const spec = { logicalCluster, destinationShard: to };
  const migration = { apiVersion: 'migration.kcp.io/v1alpha1', kind: 'LogicalClusterMigration', metadata: { name }, spec };
  await client.create(aPath({ ...migrations, shard, cluster: 'org1' }), migration);
}

async function has(client: KubeClient, shard: string, cluster: string): Promise<readonly string[]> {
  const kinds = [aPath({ shard, cluster }), aPath({ ...clusters, shard, cluster })];
  const lists = await Promise.all(kinds.map((path) => client.list(path)));
  return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name ?? ''));
}

async function put(client: KubeClient, shard: string, cluster: string, of: Marked): Promise<void> {
  const path = aPath({ ...clusters, shard, cluster, name: 'cluster' });
  const { status, text } = await client.raw('GET', path);
  const resourceVersion =
    status === 200 ? (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion : undefined;
  const object = aLogicalCluster(of) as { metadata: object };
  if (resourceVersion === undefined) return void (await client.create(aPath({ ...clusters, shard, cluster }), object));
  const answer = await client.raw('PUT', path, { body: { ...object, metadata: { ...object.metadata, resourceVersion } } });
  if (answer.status !== 200) throw new Error(answer.text);
}

/** `acme` is on amber, and then also on birch. */
async function migrated(
  t: ExecutionContext,
  { cluster = 'acme', left = {}, now = {}, to = 'birch' }: { cluster?: string; left?: Marked; now?: Marked; to?: string } = {},
): Promise<Readonly<{ server: TestServer; clock: LeapingClock }>> {
  const clock = new LeapingClock();
  const server = await aServer(t, { clock });
  const client = server.client();
  await client.create(aPath({ cluster }), anApiExport());
  await put(client, 'amber', cluster, {});
  await migrate(client, to, { logicalCluster: cluster });
  await put(client, 'amber', cluster, { isMarked: true, ...left });
  await put(client, 'birch', cluster, { isMarked: true });
  await client.create(aPath({ shard: 'birch', cluster }), anApiExport());
  await put(client, 'birch', cluster, now);
  return { server, clock };
}

/** Lets time pass in steps of one look; each look may finish before the next step. */
async function pass(server: TestServer, clock: LeapingClock, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += lookMs) {
    clock.leap(lookMs);
    await has(server.client(), 'amber', 'acme');
  }
}

test('the objects left on the former shard are removed after a minute, and watches get their DELETED events', async (t) => {
  const { server, clock } = await migrated(t);
  const client = server.client();
  t.is((await client.raw('GET', aPath({ shard: '*', name: 'one' }))).status, 409);
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const seen: string[] = [];
  void (async () => {
    for await (const { type, object } of client.watch(aPath({ shard: '*', cluster: '*' }), { signal: stop.signal }))
      seen.push(`${type} ${object.metadata.annotations?.['kcp.io/shard']}`);
  })().catch(() => {});

  await pass(server, clock, 50_000);
  t.deepEqual(await has(client, 'amber', 'acme'), ['one', 'cluster']);
  await pass(server, clock, afterMs - 50_000);
  await until(async () => (await has(client, 'amber', 'acme')).length === 0);

  t.deepEqual(await has(client, 'birch', 'acme'), ['one', 'cluster']);
  t.is((await client.raw('GET', aPath({ shard: '*', name: 'one' }))).status, 200);
  await until(() => seen.includes('DELETED amber'));
  t.false(seen.includes('DELETED birch'));
  t.true(server.logged.some(({ event, fields }) => event === 'cluster.copies-removed' && (fields as { objects: number }).objects === 2));
});

test('a restart does not forget what is to be removed', async (t) => {
  const { server, clock } = await migrated(t);
  const again = await server.restart({ clock });
  t.teardown(() => again.close());
  await pass(again, clock, afterMs);
  await until(async () => (await has(again.client(), 'amber', 'acme')).length === 0);
  t.deepEqual(await has(again.client(), 'birch', 'acme'), ['one', 'cluster']);
});

for (const [what, options] of [
  ['while the new shard migrates as well', { now: { isMarked: true } }],
  ['that the former shard does not say is migrating', { left: { isMarked: false } }],
  ['of another logical cluster of that name', { now: { uid: 'uid-2' } }],
  ['of a logical cluster without a uid', { left: { uid: '' }, now: { uid: '' } }],
  ['of root', { cluster: 'root' }],
  ['that goes elsewhere by its migration', { to: 'cedar' }],
  ['that is marked by a migration that is not here', { left: { by: 'org1:two' } }],
  ['that is marked by nothing that could be a migration', { left: { by: 'one' } }],
] as const)
  test(`nothing is removed ${what}`, async (t) => {
    const { server, clock } = await migrated(t, options);
    const cluster = 'cluster' in options ? options.cluster : 'acme';
    await pass(server, clock, afterMs);
    t.deepEqual(await has(server.client(), 'amber', cluster), ['one', 'cluster']);
    t.deepEqual(await has(server.client(), 'birch', cluster), ['one', 'cluster']);
  });

test('a migration that is reversed in time removes nothing from its origin, and the objects left on the other shard then', async (t) => {
  const { server, clock } = await migrated(t);
  const client = server.client();
  await pass(server, clock, 30_000);
  await migrate(client, 'amber', { name: 'two' });
  await put(client, 'birch', 'acme', { isMarked: true, by: 'org1:two' });
  await put(client, 'amber', 'acme', {});
  await pass(server, clock, afterMs);
  await until(async () => (await has(client, 'birch', 'acme')).length === 0);
  t.deepEqual(await has(client, 'amber', 'acme'), ['one', 'cluster']);
});

test('nothing is removed from a shard that has a pusher', async (t) => {
  const { server, clock } = await migrated(t);
  const pusher = await RawPusher.open(server);
  t.teardown(() => pusher.socket.terminate());
  pusher.begin(sliceOf('apiexports'));
  await pass(server, clock, afterMs);
  t.deepEqual(await has(server.client(), 'amber', 'acme'), ['one', 'cluster']);
});

test('a shard that claims what another shard is migrating gets nothing removed there, whatever it pushes', async (t) => {
  const { server, clock } = await migrated(t, { now: { isMarked: true } });
  const mallory = server.client({
    as: server.authority.issue({ user: 'mallory', groups: ['strata'], uris: ['strata://shard/mallory'] }),
  });
  await put(mallory, 'mallory', 'acme', {});
  await pass(server, clock, afterMs);
  t.deepEqual(await has(server.client(), 'amber', 'acme'), ['one', 'cluster']);
  // With two migrations of one name, the cache cannot know which is true.
  await migrate(mallory, 'mallory', { shard: 'mallory' });
  await pass(server, clock, afterMs);
  t.deepEqual(await has(server.client(), 'amber', 'acme'), ['one', 'cluster']);
});
