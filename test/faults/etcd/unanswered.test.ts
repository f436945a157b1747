/**
 * Writes that etcd does not answer, because their member is frozen or the network slow, and that
 * arrive later. Finds a late write that undoes a newer one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { Push } from '../../../src/domain/push.js';
import type { Outcome } from '../../../src/domain/mutation.js';
import { aDelete, aKey, aPut, aScope } from '../../support/objects.js';
import { aClaim, aFullSync, anUpsert, aRetract, mustPush, outcomeTexts } from '../../support/pushes.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { EtcdMembers } from './etcd-members.js';
import { opened, prefix } from './open-stores.js';
import { bytes, members } from './with-members.js';

const many = 100;
const arrivesMs = 4_000;
/** Delay of the network to etcd, in each direction. */
const slowMs = 40;
/**
 * For 600 writes. Each but the first is refused once: it is sent before the server has published
 * that the slice is not synced any more.
 */
const transactionsMax = 1_500;

test('an object that was created and deleted does not come back when an unanswered create arrives', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const one = await opened(t, etcd, { timeoutMs: 1_500 });
  const other = await opened(t, etcd, { endpoints: etcd.endpoints.slice(2) });
  await one.writer.submit(aPut({ name: 'first' }, 'absent'));

  await etcd.freeze(0);
  const created = await Promise.all(Array.from({ length: many }, (__, i) => one.writer.submit(aPut({ name: `n${i}` }, 'absent'))));
  t.deepEqual([...new Set(created.map(({ kind }) => kind))], ['written']);
  await other.revisions.reachNewest();
  const deleted = await Promise.all(created.map((__, i) => other.writer.submit(aDelete({ name: `n${i}` }))));
  t.deepEqual([...new Set(deleted.map(({ kind }) => kind))], ['written']);
  etcd.thaw(0);
  await sleep(arrivesMs);
  await other.revisions.reachNewest();

  t.is(await other.objects.count(aScope(), undefined, 10_000), 1);
});

test('an object that was pushed and retracted does not come back when an unanswered push arrives', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd, { timeoutMs: 1_500 });
  const lane = store.writer.lane();
  await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  const each = (push: (place: { name: string }) => Push): readonly Push[] =>
    Array.from({ length: many }, (__, i) => push({ name: `n${i}` }));

  await etcd.freeze(0);
  const put = outcomeTexts(await lane.push(each(anUpsert)));
  t.true(
    put.every((outcome) => outcome === 'written' || outcome === 'unchanged'),
    String(new Set(put)),
  );
  t.deepEqual([...new Set(outcomeTexts(await lane.push(each(aRetract))))], ['written']);
  etcd.thaw(0);
  await sleep(arrivesMs);
  await store.revisions.reachNewest();

  t.is(await store.objects.count(aScope(), undefined, 10_000), 1);
});

test('pushes beside a failed one do not arrive once their pusher has come back and synced something else', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  const store = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${network.port}`] });
  const lane = store.writer.lane();
  const tooLarge = anUpsert({ name: 'large' }, { spec: { filling: 'x'.repeat(2_000_000) } });

  for (let round = 1; round <= 4; round += 1) {
    await mustPush(lane, [aClaim(), ...aFullSync({}, [])]);
    network.delay(slowMs);
    const beside = Array.from({ length: 500 }, (__, i) => anUpsert({ name: `n${i}` }));
    t.deepEqual([...new Set(outcomeTexts(await lane.push([tooLarge, ...beside])))], ['unavailable']);
    for (const push of [aClaim(), ...aFullSync({}, [])]) await mustPush(lane, [push]);
    await sleep(20 * slowMs);
    network.heal();
    await store.revisions.reachNewest();

    t.like([...store.state.slices][0], { objects: 0, syncedTerm: 1_000 }, `round ${round}`);
  }
});

test('a create that was never sent is not taken for an earlier one of the same content', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const port = Number(new URL(etcd.endpoints[0]!).port);
  const proxy = await TcpProxy.start(port);
  const store = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${proxy.port}`], timeoutMs: 3_000 });
  await store.writer.submit(aPut({}, 'absent'));
  await store.writer.submit(aDelete({}));

  proxy.refuse();
  proxy.cut();
  const again = store.writer.submit(aPut({}, 'absent'));
  await sleep(700);
  proxy.heal();
  t.is((await again).kind, 'written');
  await store.revisions.reachNewest();
  t.is((await store.objects.get(aKey()))?.resourceVersion, await resourceVersionOf(again));
  await store.close();
  await proxy.close();
});

test('hundreds of plain writes to a synced slice do not refuse each other, and no server takes them for a restore', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const stores = [await opened(t, etcd), await opened(t, etcd)] as const;
  await mustPush(stores[0].writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert({ name: 'first' })])]);
  await stores[1].revisions.reachNewest();

  const before = await transactions(etcd);
  const written = await Promise.all(
    Array.from({ length: 600 }, (__, i) => stores[i % 2]!.writer.submit(aPut({ name: `n${i}` }, 'absent'))),
  );
  const sent = (await transactions(etcd)) - before;
  // If each write changed the slice's record, it would refuse the others: 600 took 20 s that way.
  t.log(`${sent} transactions`);
  t.true(sent < transactionsMax, `${sent} transactions`);
  t.deepEqual([...new Set(written.map(({ kind }) => kind))], ['written']);
  t.true(stores.every(({ isOpen }) => isOpen));
  t.is([...stores[0].state.slices][0]?.syncedTerm, 0);
});

/** How many transactions the only member has answered, by its own metrics. */
async function transactions({ endpoints: [endpoint] }: EtcdMembers): Promise<number> {
  const text = await (await fetch(`${endpoint}/metrics`)).text();
  const counts = [...text.matchAll(/^grpc_server_handled_total\{[^}]*grpc_method="Txn"[^}]*\} (\S+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function resourceVersionOf(outcome: Promise<Outcome>): Promise<string | undefined> {
  const written = await outcome;
  return written.kind === 'written' ? written.resourceVersion : undefined;
}

test('pushes that are under way while the fence is renewed are all written, and the server takes that for no restore', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  const client = etcd.client();
  t.teardown(() => client.close());
  const [start, end] = ['fences/', 'fences0'].map((place) => bytes(`${prefix}.strata/v1/${place}`)) as [Uint8Array, Uint8Array];
  const [fence] = (await client.range({ key: start, rangeEnd: end })).kvs;
  const renew = { kind: 'put' as const, key: fence!.key, value: fence!.value, lease: fence!.lease };
  const objects = 3_000;

  let isPushing = true;
  const pushing = mustPush(store.writer.lane(), [
    aClaim(),
    ...Array.from({ length: objects }, (_none, i) => anUpsert({ name: `n${i}` })),
  ]).finally(() => (isPushing = false));
  let renewals = 0;
  for (; isPushing; renewals += 1) {
    await client.txn({ compare: [], success: [renew], failure: [] });
    await sleep(50);
  }
  await pushing;
  t.true(renewals > 3);
  t.is(await store.objects.count(aScope(), undefined, 2 * objects), objects);
});

test('writes that are together too large for a slow network are written, or refused in time', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  const store = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${network.port}`] });
  network.narrow(2 * 1024 * 1024);
  const spec = { filling: 'x'.repeat(100_000) };
  let left = Array.from({ length: many }, (__, i) => `n${i}`);
  // Sends refused writes again.
  for (let asked = 0; left.length > 0 && asked < 3; asked += 1) {
    const outcomes = await Promise.all(left.map((name) => store.writer.submit(aPut({ name }, 'absent', { spec }))));
    t.true(outcomes.every(({ kind }) => kind === 'written' || kind === 'unavailable'));
    const isLeft = outcomes.map(({ kind }) => kind !== 'written');
    t.log(`${isLeft.filter((is) => is).length} left`);
    left = left.filter((__, i) => isLeft[i]);
  }
  t.is(left.length, 0);
});
