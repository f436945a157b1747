/**
 * Stores of several servers on one prefix of a real etcd: what each shows, which one leads, and how
 * one completes what another has left undone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { formatSlice } from '../../../src/domain/slice.js';
import { formatClientKey } from '../../../src/domain/key.js';
import type { Scope } from '../../../src/domain/scope.js';
import { EtcdCompaction } from '../../../src/store/etcd/compaction.js';
import { formatObjectKey } from '../../../src/store/etcd/object-keys.js';
import { formatRecordKey, formatServerRecord, type RecordKey } from '../../../src/store/etcd/records.js';
import { valueOf } from '../../../src/store/etcd/stored-values.js';
import type { EtcdStore } from '../../../src/store/etcd/store.js';
import { pushersOf } from '../../support/intake/fake-peers.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aBody, aDelete, aKey, aPut, shardName } from '../../support/objects.js';
import { aClaim, aClear, aDrop, aFullSync, anUpsert, mustPush, outcomeTexts } from '../../support/pushes.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { silent } from '../../support/test-store.js';
import { until } from '../../support/test-server.js';
import { opened, prefix } from './open-stores.js';
import { bytes, members, text } from './with-members.js';

/** Delay of the network between a server and etcd, in each direction. */
const behindMs = 100;

const everything: Scope = { ...aKey().resource, shard: '*', cluster: '*', namespace: undefined, name: undefined };

async function namesOf(store: EtcdStore): Promise<readonly string[]> {
  const page = await store.objects.snapshot(everything, store.revisions.published).page(undefined);
  return page.objects.map(({ key }) => `${key.shard}/${key.name}`);
}

test('what one server has acknowledged, another server shows to a client that asks for the newest', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const stores = [await opened(t, etcd), await opened(t, etcd)] as const;
  t.is(stores[0].epoch, stores[1].epoch, 'a server that joins others has their epoch');

  let behind = 0;
  for (let i = 0; i < 200; i += 1) {
    const [writer, reader] = i % 2 === 0 ? stores : ([stores[1], stores[0]] as const);
    const name = `n${i}`;
    const outcome = await writer.writer.submit(aPut({ name }, 'absent'));
    if (outcome.kind !== 'written') return t.fail(outcome.kind);
    if (reader.revisions.locate(outcome.resourceVersion).kind === 'above') behind += 1;
    await Promise.all([reader.revisions.reachNewest(), reader.revisions.reachNewest()]);
    t.deepEqual(reader.revisions.locate(outcome.resourceVersion), { kind: 'ours', revision: outcome.revision });
    t.is((await reader.objects.get(aKey({ name })))?.revision, outcome.revision);
  }
  t.true(behind > 0, 'else nothing was shown');
});

test('unchanged objects can be read although another client compacts etcd to now and no body is in memory', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd, { recentBytesMax: 0 });
  const names = ['a', 'b', 'c'];
  for (const name of names) await store.writer.submit(aPut({ name }, 'absent'));
  const other = etcd.client();
  t.teardown(() => other.close());

  let behind = 0;
  for (let round = 0; round < 20; round += 1) {
    await other.txn({ compare: [], success: [{ kind: 'put', key: bytes('/else'), value: bytes('x') }], failure: [] });
    const now = await other.revision();
    await other.compact(now);
    if (store.revisions.published < now) behind += 1;
    t.is((await store.objects.get(aKey({ name: 'b' })))?.key.name, 'b');
    t.deepEqual(
      await namesOf(store),
      names.map((name) => `amber/${name}`),
    );
  }
  t.true(behind > 0, 'else nothing was shown');
});

test('one of several servers leads, and when it stops another leads within a second', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const stores = [await opened(t, etcd), await opened(t, etcd), await opened(t, etcd)];
  const leading = (): readonly EtcdStore[] => stores.filter(({ isOpen, peers }) => isOpen && peers.leadsSinceMs !== undefined);
  await until(() => leading().length === 1, 5_000);

  const [first] = leading();
  for (const each of stores)
    each.peers.report({ pushers: new Map(), lastWrites: new Map([[shardName('amber'), stores.indexOf(each) + 1]]) });
  await until(
    () =>
      stores.every(({ peers }) => peers.others.size === 2 && [...peers.others.values()].every(({ lastWrites }) => lastWrites.size === 1)),
    5_000,
  );
  const beganMs = performance.now();
  await first?.close();
  await until(() => leading().length === 1, 1_000);
  t.true(performance.now() - beganMs < 1_000);
  t.not(leading()[0], first);
  await until(() => stores.filter(({ isOpen }) => isOpen).every(({ peers }) => peers.others.size === 1), 1_000);
});

test('a pusher that has moved to another server is fenced at the first', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const [one, other] = [(await opened(t, etcd)).writer.lane(), (await opened(t, etcd)).writer.lane()];
  await mustPush(one, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  // This holds for the same process in the same term too: pushes that are under way on its former
  // connection must not arrive any more.
  await mustPush(other, [aClaim()]);
  t.deepEqual(outcomeTexts(await one.push([anUpsert({ name: 'late' })])), ['fenced by 1000']);
  t.deepEqual(outcomeTexts(await other.push([anUpsert({ name: 'new' })])), ['written']);
  await mustPush(one, [aClaim({}, 2_000)]);
  t.deepEqual(outcomeTexts(await other.push([anUpsert({ name: 'later' })])), ['fenced by 2000']);
});

test('the leader writes a namesake again that a dead server had marked and not written', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  await store.writer.submit(aPut({ shard: 'amber' }, 'absent'));
  await store.writer.submit(aPut({ shard: 'birch' }, 'absent'));
  const [gone, left] = [aKey({ shard: 'amber' }), aKey({ shard: 'birch' })];

  const client = etcd.client();
  const mark = formatRecordKey(prefix, { kind: 'rewrite', of: formatClientKey(gone) });
  const { revision } = await client.txn({
    compare: [],
    success: [
      { kind: 'delete', key: bytes(formatObjectKey(prefix, gone)) },
      { kind: 'put', key: bytes(mark), value: bytes('') },
    ],
    failure: [],
  });
  await until(async () => ((await store.objects.get(left))?.revision ?? 0) > revision, 10_000);
  t.is((await client.range({ key: bytes(mark) })).kvs.length, 0);
  client.close();
  t.deepEqual(await namesOf(store), ['birch/one']);
});

test('informers end up with a namesake that is written while a server that is behind deletes what they had', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const proxy = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => proxy.close());
  const [near, far] = [await opened(t, etcd), await opened(t, etcd, { endpoints: [`http://127.0.0.1:${proxy.port}`] })];
  const [gone, left] = [{ shard: 'amber' }, { shard: 'birch' }];
  await near.writer.submit(aPut(gone, 'absent'));
  await far.revisions.reachNewest();
  const shown: string[] = [];
  near.commits.subscribe(({ changes }) => shown.push(...changes.map(({ kind, key }) => `${kind} ${key.shard}`)));

  proxy.delay(behindMs);
  const outcomes = await Promise.all([far.writer.submit(aDelete(gone)), near.writer.submit(aPut(left, 'absent'))]);
  proxy.heal();
  await near.revisions.reachNewest();

  t.deepEqual(
    outcomes.map(({ kind }) => kind),
    ['written', 'written'],
  );
  t.deepEqual(shown, ['put birch', 'delete amber', 'put birch']);
});

test('the leader writes the namesake of an object again that another client has deleted without a mark', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  await store.writer.submit(aPut({ shard: 'amber' }, 'absent'));
  await store.writer.submit(aPut({ shard: 'birch' }, 'absent'));
  const client = etcd.client();
  t.teardown(() => client.close());

  const gone = bytes(formatObjectKey(prefix, aKey({ shard: 'amber' })));
  const { revision } = await client.txn({ compare: [], success: [{ kind: 'delete', key: gone }], failure: [] });

  await until(async () => ((await store.objects.get(aKey({ shard: 'birch' })))?.revision ?? 0) > revision, 10_000);
  t.deepEqual(await namesOf(store), ['birch/one']);
});

test('the leader finishes a removal that a dead server has not finished', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  await mustPush(store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()]), aClear()]);
  const client = etcd.client();
  const key = formatObjectKey(prefix, aKey());
  await client.txn({
    compare: [],
    success: [{ kind: 'put', key: bytes(key), value: valueOf(aBody(aKey())) }],
    failure: [],
  });
  await until(async () => (await client.range({ key: bytes(key) })).kvs.length === 0, 20_000);
  client.close();
  t.deepEqual(await namesOf(store), []);
});

test('a server leaves the removal of a type to the running server that began it, and takes over once that has ended', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const [one, other] = [await opened(t, etcd), await opened(t, etcd)];
  const many = Array.from({ length: 3_000 }, (__, i) => anUpsert({ name: `n${i}` }));
  await mustPush(one.writer.lane(), [aClaim(), ...aFullSync({}, many)]);
  const dropped = one.writer.lane().push([aDrop()]);
  await until(async () => (await other.objects.count(everything, undefined, 10_000)) !== many.length);

  t.deepEqual(await other.writer.lane().push([aDrop()]), [{ kind: 'swept', removed: 0 }]);
  one.beginClose();
  t.deepEqual(outcomeTexts(await dropped), ['unavailable']);
  t.not(await other.objects.count(everything, undefined, 10_000), 0);
  t.deepEqual(await other.writer.lane().push([aDrop()]), [{ kind: 'swept', removed: 0 }]);
  await one.close();
  await other.revisions.reachNewest();

  t.not(await other.objects.count(everything, undefined, 10_000), 0);
  await mustPush(other.writer.lane(), [aDrop()]);
  t.deepEqual(await namesOf(other), []);
  t.deepEqual([...other.state.slices], []);
});

for (const [what, removal] of [
  ['a shard that stays away', aClear('amber', { fence: false })],
  ['a type', aDrop()],
] as const)
  for (const when of ['when it begins', 'while it goes on'] as const)
    test(`the removal of ${what} at one server, and a full sync at another, sent ${when}: the sync keeps all its objects or is void`, async (t) => {
      const etcd = await members(t);
      if (etcd === undefined) return;
      await using _ = etcd;
      const [one, other] = [await opened(t, etcd), await opened(t, etcd)];
      const lane = one.writer.lane();
      const many = Array.from({ length: 3_000 }, (__, i) => anUpsert({ name: `n${i}` }));
      await mustPush(lane, [aClaim(), ...aFullSync({}, many)]);
      await other.revisions.reachNewest();
      const invalidated: string[] = [];
      one.state.follow((change) => invalidated.push(...change.invalidated.map(formatSlice)));

      const from = one.revisions.published;
      const removed = mustPush(other.writer.lane(), [removal]);
      if (when === 'while it goes on') await until(() => one.revisions.published > from + 20);
      const ended = outcomeTexts(await lane.push(aFullSync({}, many))).at(-1);
      t.log(`its end: ${ended}; removed: ${(await removed)[0]}`);
      await Promise.all([one.revisions.reachNewest(), other.revisions.reachNewest()]);

      t.is(invalidated.length, 1, 'its pusher is asked to sync it again');
      // If not, the sync was void, or had ended before the removal began.
      const isSynced = [...one.state.slices][0]?.syncedTerm === 1_000;
      if (isSynced) t.is(await one.objects.count(everything, undefined, 10_000), many.length);
      if (when === 'while it goes on') t.true(isSynced || ended === 'unbegun');
      await mustPush(lane, aFullSync({}, many));
      await other.revisions.reachNewest();
      t.is(await other.objects.count(everything, undefined, 10_000), many.length);
    });

test('the leading server compacts etcd to where it was an interval ago, but not while another client does', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const [client, clock] = [etcd.client(), new ManualClock()];
  const compacted: number[] = [];
  const leads = { is: false };
  const parts = { client, clock, log: silent, observe: { compacted: (at: number) => void compacted.push(at) }, isLeader: () => leads.is };
  const compaction = new EtcdCompaction(parts, { ageMs: 300_000 });
  t.teardown(() => {
    compaction.close();
    client.close();
  });
  const put = async (key: string): Promise<number> =>
    (await client.txn({ compare: [], success: [{ kind: 'put', key: bytes(key), value: bytes('x') }], failure: [] })).revision;
  const lookAfter = async (ms: number): Promise<void> => {
    clock.skip(ms);
    await compaction.compactIfDue();
  };

  const first = await put('/cache/a');
  await lookAfter(0);
  await put('/cache/a');
  await lookAfter(300_000);
  t.deepEqual(compacted, [], 'it does not lead');
  leads.is = true;
  await compaction.compactIfDue();
  t.deepEqual(compacted, [first]);
  await lookAfter(299_000);
  t.deepEqual(compacted, [first], 'not before an interval has passed');
  await lookAfter(1_000);
  t.is(compacted.length, 2);
  t.is(text((await client.range({ key: bytes('compact_rev_key') })).kvs[0]?.value ?? bytes('')), String(compacted[1]));

  await put('compact_rev_key');
  await lookAfter(150_000);
  await lookAfter(299_000);
  t.is(compacted.length, 2, 'another has done it meanwhile');
  await lookAfter(1_000);
  t.is(compacted.length, 3);
  await t.throwsAsync(client.range({ key: bytes('/cache/a'), revision: first }), { message: /compacted/ });
});

test('an object that two servers write and delete at once is the same at both in the end', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const stores = [await opened(t, etcd), await opened(t, etcd)] as const;
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, i) => stores[i % 2]!.writer.submit(i % 3 === 0 ? aDelete({}) : aPut({}, 'absent', { spec: i }))),
  );
  await Promise.all(stores.map((store) => store.revisions.reachNewest()));
  const written = outcomes.flatMap((outcome) => (outcome.kind === 'written' ? [outcome.revision] : []));
  t.is(new Set(written).size, written.length, 'each has a revision of its own');
  t.true(outcomes.every(({ kind }) => kind === 'written' || kind === 'refused'));
  t.deepEqual(await stores[0].objects.get(aKey()), await stores[1].objects.get(aKey()));
});

test('a server ignores the leader and server records that were copied without their leases', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const put = (key: RecordKey, value: Uint8Array) =>
    client.txn({ compare: [], success: [{ kind: 'put', key: bytes(formatRecordKey(prefix, key)), value }], failure: [] });
  await put({ kind: 'leader' }, bytes('phantom'));
  await put({ kind: 'server', id: 'phantom' }, formatServerRecord({ pushers: pushersOf(shardName('amber')), lastWrites: new Map() }));
  client.close();

  const store = await opened(t, etcd);
  await until(() => store.peers.leadsSinceMs !== undefined, 5_000);
  t.is(store.peers.others.size, 0);
});

test('what a server could not report to the other servers while etcd was down, it reports once etcd answers again', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const [one, other] = [await opened(t, etcd, { timeoutMs: 500 }), await opened(t, etcd)];
  await etcd.signal(0, 'SIGKILL');
  one.peers.report({ pushers: pushersOf(shardName('amber')), lastWrites: new Map() });
  await sleep(1_000);
  etcd.begin(0);
  await etcd.untilReady(0);
  await until(() => [...other.peers.others.values()].some(({ pushers }) => pushers.has(shardName('amber'))), 10_000);
  t.pass();
});

test('servers that start together share one epoch, and none ends another', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  for (let round = 0; round < 5; round += 1) {
    const starting = Array.from({ length: 3 }, async (__, i) => {
      await sleep(3 * i);
      return opened(t, etcd);
    });
    const stores = await Promise.all(starting);
    await Promise.all(stores.map((store) => store.revisions.reachNewest()));
    t.is(new Set(stores.map(({ cacheId, epoch }) => `${cacheId} ${epoch}`)).size, 1, `round ${round}`);
    t.true(stores.every(({ isOpen }) => isOpen));
    await Promise.all(stores.map((store) => store.close()));
  }
});

test('a slice that was synced while the same server removed it is gone once the server removes it again', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  const lane = store.writer.lane();
  const many = Array.from({ length: 3_000 }, (__, i) => anUpsert({ shard: 'zinc', name: `n${i}` }));
  const few = [anUpsert({ name: 'a' }), anUpsert({ name: 'b' })];
  await mustPush(lane, [aClaim(), aClaim('zinc'), ...aFullSync({}, few), ...aFullSync({ shard: 'zinc' }, many)]);
  const first = mustPush(store.writer.lane(), [aDrop()]);
  await until(async () => (await store.objects.count(everything, undefined, 10_000)) !== many.length + few.length);
  await mustPush(lane, aFullSync({}, few));
  await Promise.all([first, mustPush(store.writer.lane(), [aDrop()])]);

  t.deepEqual(await namesOf(store), []);
  t.deepEqual([...store.state.slices], []);
});

test('a shard whose record another client deletes is unknown, and a claim makes it known again', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  const client = etcd.client();
  t.teardown(() => client.close());
  await mustPush(store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()]), aClear()]);

  const key = bytes(formatRecordKey(prefix, { kind: 'shard', shard: shardName('amber') }));
  await client.txn({ compare: [], success: [{ kind: 'delete', key }], failure: [] });
  await until(() => [...store.state.shards].length === 0);

  t.deepEqual(outcomeTexts(await store.writer.lane().push([aClaim()])), ['acquired']);
  t.like(store.state.shard(shardName('amber')), { via: 'local', removed: false });
});
