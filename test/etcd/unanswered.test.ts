/** Writes that etcd has not answered, because the member that they went to stands still, and that arrive once it goes on. */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import type { Push } from '../../src/domain/push.js';
import { aDelete, aPut, aScope } from '../support/objects.js';
import { aClaim, aFullSync, anUpsert, aRetract, mustPush, outcomeTexts } from '../support/pushes.js';
import { opened } from './open-stores.js';
import { members } from './with-members.js';

const many = 100;
const arrivesMs = 4_000;

test('what was created and deleted does not come back when a create that was not answered arrives', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const one = await opened(t, etcd, { timeoutMs: 1_500 });
  const other = await opened(t, etcd, { endpoints: etcd.endpoints.slice(2) });
  await one.submit(aPut({ name: 'first' }, 'absent'));

  await etcd.signal(0, 'SIGSTOP');
  const created = await Promise.all(Array.from({ length: many }, (__, i) => one.submit(aPut({ name: `n${i}` }, 'absent'))));
  t.deepEqual([...new Set(created.map(({ kind }) => kind))], ['written']);
  await other.reachNewest();
  const deleted = await Promise.all(created.map((__, i) => other.submit(aDelete({ name: `n${i}` }))));
  t.deepEqual([...new Set(deleted.map(({ kind }) => kind))], ['written']);
  await etcd.signal(0, 'SIGCONT');
  await sleep(arrivesMs);
  await other.reachNewest();

  t.is(await other.count(aScope(), undefined, 10_000), 1);
});

test('what was pushed and retracted does not come back when a push that was not answered arrives', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd, { timeoutMs: 1_500 });
  const lane = store.lane();
  await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  const each = (push: (place: { name: string }) => Push): readonly Push[] =>
    Array.from({ length: many }, (__, i) => push({ name: `n${i}` }));

  await etcd.signal(0, 'SIGSTOP');
  const put = outcomeTexts(await lane.push(each(anUpsert)));
  t.true(
    put.every((outcome) => outcome === 'written' || outcome === 'unchanged'),
    String(new Set(put)),
  );
  t.deepEqual([...new Set(outcomeTexts(await lane.push(each(aRetract))))], ['written']);
  await etcd.signal(0, 'SIGCONT');
  await sleep(arrivesMs);
  await store.reachNewest();

  t.is(await store.count(aScope(), undefined, 10_000), 1);
});
