/**
 * Three cases in which a cache must not prove an absence: it refused an object of the type, the
 * pusher no longer names the type, or a cache that may have the object is away.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import type { SliceFreshness } from '../../../src/frames/frame.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree, holds } from '../../support/test-tree.js';
import { aReader, aRef } from '../../support/lookup/a-reader.js';

const exports = sliceOf('apiexports');
const schemas = sliceOf('apiresourceschemas');
const bounds = { reportAgeMaxMs: 0 };

/** Whether the cache proves the absence of an object that does not exist. */
async function isVouched(t: ExecutionContext, server: TestServer): Promise<boolean> {
  const answer = await aReader(t, server, { bounds }).get(aRef({ name: 'none' }));
  t.is(answer.kind, 'absent');
  return answer.kind === 'absent' && answer.whole;
}

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

test('after this cache refused an object from a link, it does not prove that object absent until it accepts it', async (t) => {
  const children = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}`;
  const root = await aServer(t, { config: children });
  const child = await openChild(root);
  const whole: SliceFreshness = { slice: exports, connected: true, synced: true, lagMs: 0, whole: true };
  let resyncs = 0;
  // Answers every heartbeat: a child that misses one for three seconds is away, and that alone
  // would prevent the proof.
  const answer = async (): Promise<void> => {
    for (;;) {
      const frame = await child.next();
      if (frame.kind === 'resync') resyncs += 1;
      const report = { kind: 'report', freshness: [whole], isAll: true, isComplete: true } as const;
      if (frame.kind === 'heartbeat') child.numbered((sequence) => ({ ...report, sequence, heartbeat: frame.number }));
    }
  };
  const broken = { ...pushedExport('two'), body: new TextEncoder().encode('[') };
  claim(child, shardName('amber'));
  child.begin(exports);
  child.put(exports, [pushedExport('one'), broken]);
  child.end(exports, 2, 'a filter');
  const answering = answer().catch(() => {});
  t.teardown(async () => {
    child.socket.terminate();
    await answering;
  });
  await until(async () => (await statusOf(root)).shards[0]?.connection.kind === 'connected');

  t.like((await statusOf(root)).shards[0]?.slices[0], { everSynced: true, whole: false, lagMs: 0, sourceConnected: true });
  t.false(await isVouched(t, root));

  child.put(exports, [pushedExport('two')]);
  await until(() => resyncs === 1);
  child.begin(exports);
  child.put(exports, [pushedExport('one'), pushedExport('two')]);
  child.end(exports, 2, 'a filter');
  await until(async () => (await statusOf(root)).shards[0]?.slices[0]?.whole === true);
  t.true(await isVouched(t, root));

  child.put(exports, [broken]);
  await until(() => resyncs === 2);
  await until(async () => !(await isVouched(t, root)));
  t.pass('it keeps its earlier version');
});

test('a type that a pusher no longer names has unknown freshness, and its absences are not proved', async (t) => {
  const server = await aServer(t);
  const before = await RawPusher.open(server);
  await before.syncWhole(exports, [pushedExport('one')]);
  const metadata = { name: 'one', uid: 'uid-of-one' };
  await before.syncWhole(schemas, [pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata })], 'v1alpha1');
  const ref = aRef({ resource: 'apiresourceschemas', version: 'v1alpha1' });
  const reader = aReader(t, server, { bounds });
  t.like(await reader.get({ ...ref, name: 'none' }), { kind: 'absent', whole: true });

  const after = await RawPusher.open(server, { term: 2_000 });
  await after.syncWhole(exports, [pushedExport('one')]);

  t.like(await reader.get(aRef({ name: 'none' })), { kind: 'absent', whole: true });
  t.like(await reader.get({ ...ref, name: 'none' }), { kind: 'absent', whole: false });
  t.like(await reader.get(ref), { kind: 'found', freshness: { whole: false, sourceConnected: null, lagMs: null } });
});

test('while a former neighbour is away, no cache of its tree proves an absence', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const west = await tree.cache('west', { parent: root });
  const east = await tree.cache('east', { parent: root });
  await (await RawPusher.open(west)).syncWhole(exports, [pushedExport('one')]);
  for (const server of [root, east, west]) await holds(t, server, 'one');
  for (const server of [root, east, west]) await until(() => isVouched(t, server));
  const flags = await tree.linkFlags('east', root);

  await east.stop();
  await until(async () => !(await isVouched(t, root)));
  await until(async () => !(await isVouched(t, west)));
  t.false((await statusOf(west)).tree?.complete);
  const back = await east.restart({ flags, config: openPolicies });
  t.teardown(() => back.close());

  for (const server of [root, back, west]) await until(() => isVouched(t, server));
  t.pass();
});

const openPolicies = `
parent: {forward: [{types: ['*']}], follow: [{types: ['*']}]}
children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}
`;

test('a restarted cache remembers which caches were below it, until an operator forgets them', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  await (await RawPusher.open(east)).syncWhole(exports, [pushedExport('one')]);
  await holds(t, root, 'one');
  await east.stop();

  const again = await root.restart({ config: openPolicies.replace(/^parent:.*$/m, '') });
  t.teardown(() => again.close());
  await (await RawPusher.open(again, { name: 'birch' })).syncWhole(sliceOf('apiexports', { shard: 'birch' }), []);

  t.false((await statusOf(again)).tree?.complete);
  t.false(await isVouched(t, again));
  t.is((await again.client().raw('DELETE', '/services/cache/caches/east')).status, 200);
  t.true((await statusOf(again)).tree?.complete);
  t.false(await isVouched(t, again), 'nobody pushes the objects of amber');
  t.is((await again.client().raw('DELETE', '/services/cache/shards/amber')).status, 200);
  t.true(await isVouched(t, again));
});

test('a cache proves no absence for objects that a policy at the other end withholds', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const config = `parent: {forward: [{types: ['*'], clusters: [acme]}], follow: [{types: ['*']}]}\n`;
  const east = await tree.cache('east', { parent: root, config });
  await (await RawPusher.open(east)).syncWhole(exports, [pushedExport('one'), pushedExport('two', { cluster: 'beta' })]);
  await holds(t, root, 'one');
  const slice = async (server: TestServer) => (await statusOf(server)).shards[0]?.slices[0];
  await until(async () => (await slice(root))?.sourceConnected === true && (await slice(root))?.current === true);

  t.like(await slice(east), { whole: true });
  t.like(await slice(root), { everSynced: true, current: true, whole: false });
  t.false(await isVouched(t, root));
});

test('a cache that must not learn of a shard below it is incomplete until it may; its own shard coming back does not count', async (t) => {
  const tree = await aTree(t);
  const accepting = (shards: string): string =>
    `children: {east: {accept: [{shards: [${shards}]}], offer: [{types: ['*']}]}}\nlink: {policyPoll: 100ms}\n`;
  let config = accepting('amber');
  const root = await tree.cache('root', { config: () => config });
  const east = await tree.cache('east', { parent: root });
  await (await RawPusher.open(root, { name: 'birch' })).syncWhole(sliceOf('apiexports', { shard: 'birch' }), []);
  await (await RawPusher.open(east)).syncWhole(exports, [pushedExport('one')]);
  await holds(t, root, 'one');
  await until(() => isVouched(t, root));
  t.is((await statusOf(root)).tree?.children[0]?.receiving.claimsIgnored, 0);

  const cedar = sliceOf('apiexports', { shard: 'cedar' });
  await (await RawPusher.open(east, { name: 'cedar' })).syncWhole(cedar, [pushedExport('two')]);
  await until(async () => (await statusOf(root)).tree?.complete === false);
  t.false(await isVouched(t, root));
  // The child repeats the claim when a pusher holds the shard, so the count is 1 or 2.
  t.true([1, 2].includes((await statusOf(root)).tree?.children[0]?.receiving.claimsIgnored ?? 0));

  config = accepting('amber, cedar');
  await holds(t, root, 'one,two');
  await until(() => isVouched(t, root));
  t.true((await statusOf(root)).tree?.complete);
});
