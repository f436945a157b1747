/**
 * What the store does when it cannot write: a refused batch, a full disk (F4), a committer that
 * dies.
 */
import { rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { Mutation } from '../../../src/domain/mutation.js';
import { changesBehind, list, mustWrite } from '../../contract/read-all.js';
import { aDelete, aKey, aPut, aScope } from '../../support/objects.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { until } from '../../support/test-server.js';
import { fill, filler, smallDisk } from '../../support/store/small-disk.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

const probeIntervalMs = 5_000;

/** A mutation that SQLite refuses, or one that throws in the committer. */
function spoiled(name: string, how: 'refused by SQLite' | 'a bug'): Mutation {
  const mutation = aPut({ name }, 'absent');
  if (mutation.kind !== 'put') throw new Error('the mutation is no put');
  if (how === 'refused by SQLite') return { ...mutation, body: { ...mutation.body, marks: { ...mutation.body.marks, revisionAt: 0.5 } } };
  const resource = { ...mutation.key.resource, group: {} as never };
  return { ...mutation, key: { ...mutation.key, resource } };
}

test('a refused batch leaves no trace, and the next revision follows without a gap', async (t) => {
  const { store } = await SqliteEngine.start(t);
  await mustWrite(store, aPut({ name: 'before' }, 'absent'));
  await mustWrite(store, aPut({ name: 'another' }, 'absent'));
  const batch = [aPut({ name: 'good', resource: 'news' }, 'absent'), aDelete({ name: 'before' }), spoiled('bad', 'refused by SQLite')];

  const outcomes = await Promise.all(batch.map((mutation) => store.writer.submit(mutation)));

  t.deepEqual(
    outcomes.map(({ kind }) => kind),
    ['unavailable', 'unavailable', 'unavailable'],
  );
  t.like(outcomes[0], { refusal: { reason: 'ServiceUnavailable', message: 'the store cannot write (SQLITE_CONSTRAINT_DATATYPE)' } });
  t.truthy(store.lastFailure);
  t.is(store.revisions.published, 2);
  t.is((await store.objects.get(aKey({ name: 'before' })))?.revision, 1);
  t.is((await mustWrite(store, aPut({ name: 'good', resource: 'news' }, 'absent'))).revision, 3);
  t.is(store.lastFailure, undefined);
  t.deepEqual(
    (await changesBehind(store, aScope({ resource: 'news' }), 0)).map(({ revision }) => revision),
    [3],
  );
});

test('a failed store tries again by itself, and a refused mutation does not count as a successful write', async (t) => {
  const { store, clock } = await SqliteEngine.start(t);
  await mustWrite(store, aPut({}, 'absent'));
  await store.writer.submit(spoiled('bad', 'refused by SQLite'));

  t.is((await store.writer.submit(aPut({}, 'absent'))).kind, 'refused');
  t.truthy(store.lastFailure, 'nothing was written');
  clock.advance(probeIntervalMs);
  await until(() => store.lastFailure === undefined);

  t.is(store.revisions.published, 1, 'a probe writes no change');
});

test('when the committer dies the store closes: waiting writers get an answer, the lock is free, no timer is left', async (t) => {
  const engine = await SqliteEngine.start(t);
  const { store, clock } = engine;
  await mustWrite(store, aPut({}, 'absent'));

  const outcomes = await Promise.all([
    store.writer.submit(spoiled('bad', 'a bug')),
    store.writer.submit(aPut({ name: 'behind' }, 'absent')),
  ]);
  const failure = await store.failed;

  for (const outcome of outcomes) t.like(outcome, { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable' } });
  t.true(failure instanceof Error);
  t.false(store.isOpen);
  t.is(clock.pending, 0);
  t.like(await store.writer.submit(aPut({ name: 'late' }, 'absent')), { kind: 'unavailable' });
  await store.close();
  const again = await engine.open();
  t.is((await list(again, aScope())).length, 1);
});

test('on a full disk writers get an error, reads continue, the store is not ready, and it recovers by itself', async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) {
    t.pass();
    return;
  }
  const clock = new ManualClock();
  const engine = await SqliteEngine.start(t, {}, { clock, directory: join(disk, 'data') });
  const { store } = engine;
  const large = 'x'.repeat(300_000);
  for (let i = 0; i < 5; i++) await mustWrite(store, aPut({ name: `n${i}` }, 'absent', { spec: large }));

  fill(disk);
  t.is(statfsSync(disk).bfree, 0);
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, i) => store.writer.submit(aPut({ name: `m${i}` }, 'absent', { spec: large }))),
  );
  const failed = outcomes.filter(({ kind }) => kind === 'unavailable');
  t.true(failed.length > 0);
  for (const outcome of failed) t.like(outcome, { refusal: { reason: 'ServiceUnavailable' } });
  const { published } = store.revisions;
  t.is(published, 5 + outcomes.length - failed.length);
  t.truthy(store.lastFailure);

  t.is((await list(store, aScope())).length, published);
  t.is((await changesBehind(store, aScope(), 0)).length, published);
  t.is((await store.writer.submit(aPut({ name: 'n0' }, 'absent'))).kind, 'refused');
  clock.advance(probeIntervalMs);
  await sleep(100);
  t.truthy(store.lastFailure, 'still full');

  rmSync(join(disk, filler));
  clock.advance(probeIntervalMs);
  await until(() => store.lastFailure === undefined);
  const healed = await mustWrite(store, aPut({ name: 'healed' }, 'absent', { spec: large }));
  t.is(healed.revision, published + 1);
  await engine.restart();
  t.is((await list(engine.store, aScope())).length, published + 1);
  t.is(engine.store.revisions.format(healed.revision), healed.resourceVersion, 'in the same epoch');
});
