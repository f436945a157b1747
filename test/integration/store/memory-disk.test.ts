import { test } from '../../support/test.js';
import { Refused } from '../../../src/domain/errors.js';
import type { Push } from '../../../src/domain/push.js';
import { changesBehind, list, listTexts, mustWrite } from '../../contract/read-all.js';
import { seeded } from '../../support/crash/random.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { MemoryDisk, type MemoryStore, type MemoryStoreOptions } from '../../support/store/memory-disk.js';
import { aBody, aKey, aPut, aScope, shardName } from '../../support/objects.js';

/**
 * A disk in a machine whose turns and time the test advances. `run` does everything that does not
 * wait for time.
 */
class Machine {
  readonly clock = new ManualClock();
  readonly #tasks: (() => void)[] = [];
  readonly #random: () => number;
  disk: MemoryDisk;

  constructor(seed = 1) {
    const { below } = seeded(seed);
    this.#random = () => below(2 ** 30) / 2 ** 30;
    this.disk = MemoryDisk.blank(this.#random);
  }

  open(options: Partial<MemoryStoreOptions> = {}): MemoryStore {
    const soon = (task: () => void): void => void this.#tasks.push(task);
    return this.disk.open({ clock: this.clock, soon, random: this.#random }, options);
  }

  async run(): Promise<void> {
    for (;;) {
      await settled();
      const task = this.#tasks.shift();
      if (task === undefined) return;
      task();
    }
  }

  async done<T>(promise: Promise<T>): Promise<T> {
    const [result] = await Promise.all([promise, this.run()]);
    return result;
  }
}

/** Lets chained promises settle that wait only for each other. */
async function settled(): Promise<void> {
  for (let i = 0; i < 50; i += 1) await Promise.resolve();
}

async function isAnswered(promise: Promise<unknown>): Promise<boolean> {
  let answered = false;
  void promise.then(() => (answered = true));
  await settled();
  return answered;
}

const amber = shardName('amber');
const slice = { shard: amber, resource: aKey().resource };
const by = { kind: 'link', neighbour: 'parent' } as const;

/** The pushes of a link that sends a whole slice. */
const received: readonly Push[] = [
  { kind: 'meet', neighbour: 'parent', cacheId: 'root' },
  { kind: 'claim', shard: amber, term: 7, process: '', removed: false, origin: 'root', via: 'parent', plain: false },
  { kind: 'begin', slice, by },
  { kind: 'upsert', key: aKey(), body: aBody(aKey()), path: undefined, by },
  { kind: 'end', slice, by, filterHash: 'e1' },
  { kind: 'reach', neighbour: 'parent', position: '42' },
];

test('acknowledged writes survive a crash', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  await machine.done(store.writer.lane().push(received));

  const { epoch } = store;
  machine.disk = store.crash();
  const again = machine.open();

  t.deepEqual(await listTexts(again, aScope()), ['amber/acme/one@1']);
  t.like([...again.state.slices][0], { objects: 1, syncedTerm: 7, everSynced: true, filterHash: 'e1' });
  t.deepEqual([...again.state.links], [{ neighbour: 'parent', cacheId: 'root', position: '42' }]);
  t.is(again.cacheId, store.cacheId);
  t.true(again.epoch > epoch);
});

test('a commit in progress at a crash is lost, or is there without an acknowledgement', async (t) => {
  for (const underWay of ['lost', 'kept'] as const) {
    const machine = new Machine();
    const store = machine.open({ commitMs: 5 });
    const outcome = store.writer.submit(aPut({}, 'absent'));
    await machine.run();

    machine.disk = store.crash(underWay);
    machine.clock.advance(5);
    await machine.run();

    t.false(await isAnswered(outcome));
    t.is((await list(machine.open(), aScope())).length, underWay === 'kept' ? 1 : 0);
  }
});

test('changes that wait together are committed together, after the time that the disk takes', async (t) => {
  const machine = new Machine();
  const store = machine.open({ commitMs: 5 });
  const commits: number[] = [];
  store.commits.subscribe(({ changes }) => commits.push(changes.length));
  const submit = (name: string) => store.writer.submit(aPut({ name }, 'absent'));

  const first = [submit('a'), submit('b')];
  await machine.run();
  const second = [submit('c'), submit('d'), submit('e')];
  machine.clock.advance(4);
  t.false(await isAnswered(Promise.all(first)));
  machine.clock.advance(1);
  t.true(await isAnswered(Promise.all(first)));
  t.deepEqual(commits, [2]);
  machine.clock.advance(5);

  t.true(await isAnswered(Promise.all(second)));
  t.deepEqual(commits, [2, 3]);
});

test('a store that has crashed answers no writer and publishes nothing', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  await machine.done(store.writer.submit(aPut({}, 'absent')));
  store.commits.subscribe(() => t.fail('a commit was published'));

  machine.disk = store.crash();
  const asked = [store.writer.submit(aPut({ name: 'two' }, 'absent')), store.writer.lane().push(received)];
  await machine.run();

  t.false(await isAnswered(Promise.any(asked)));
});

test('later writes do not change a backup; after a restore, lost positions are foreign', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  await machine.done(store.writer.lane().push(received));
  const backup = store.backup();
  await machine.done(store.writer.lane().push([{ kind: 'upsert', key: aKey({ name: 'two' }), body: aBody(aKey()), path: undefined, by }]));
  const lost = store.revisions.format(store.revisions.published);
  store.crash();

  machine.disk = backup;
  const again = machine.open();

  t.deepEqual(await listTexts(again, aScope()), ['amber/acme/one@1']);
  t.is(again.cacheId, store.cacheId);
  t.true(again.epoch > store.epoch);
  t.deepEqual(again.revisions.locate(store.revisions.format(1)), { kind: 'ours', revision: 1 });
  t.not(again.revisions.locate(lost).kind, 'ours');
  t.like([...again.state.slices][0], { objects: 1, syncedTerm: 7, everSynced: true, filterHash: 'e1' });
  t.deepEqual([...again.state.links], [{ neighbour: 'parent', cacheId: 'root', position: '42' }]);
  t.deepEqual(
    [...again.state.shards].map(({ via }) => via),
    ['parent'],
  );
  await machine.done(mustWrite(again, { ...aPut({ name: 'two' }, 'absent'), takes: true }));
  t.deepEqual(again.revisions.locate(lost), { kind: 'below' }, 'the lost revision is not the new one');
});

test('a blank disk makes another cache', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  await machine.done(mustWrite(store, aPut({}, 'absent')));

  machine.disk = new Machine(2).disk;
  const other = machine.open();

  t.not(other.cacheId, store.cacheId);
  t.not(other.epoch, store.epoch);
  t.deepEqual(await listTexts(other, aScope()), []);
});

test('a full disk accepts nothing, and a sync whose begin was refused has not begun', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  const lane = store.writer.lane();
  await machine.done(lane.push(received.slice(0, 3)));

  store.isDiskFull = true;
  const refused = await machine.done(lane.push(received.slice(3, 4)));
  store.isDiskFull = false;
  const ended = await machine.done(store.writer.lane().push(received.slice(4, 5)));

  t.like(refused[0], { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable' } });
  t.is(ended[0]?.kind, 'unbegun');
  t.is(store.revisions.published, 0);
});

test('a removal that a crash cut short is finished when the store opens again', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  await machine.done(store.writer.lane().push(received));
  await machine.done(
    store.writer
      .lane()
      .push([{ kind: 'claim', shard: amber, term: 9, process: '', removed: true, origin: 'root', via: 'parent', plain: false }]),
  );

  machine.disk = store.crash();
  const again = machine.open();
  t.is((await list(again, aScope())).length, 1);
  await machine.run();

  t.deepEqual(await listTexts(again, aScope()), []);
  t.like([...again.state.shards][0], { term: 9, removed: true });
});

test('compaction drops superseded changes up to its revision, and an earlier backup still has them', async (t) => {
  const machine = new Machine();
  const store = machine.open();
  let revision = 0;
  for (let i = 0; i < 5; i += 1)
    ({ revision } = await machine.done(mustWrite(store, aPut({}, revision === 0 ? 'absent' : revision, { spec: { i } }))));
  const backup = store.backup();

  store.compact(2);
  await machine.run();

  t.is(store.revisions.compacted, 3);
  t.throws(() => store.objects.snapshot(aScope(), 2), { instanceOf: Refused });
  t.is((await changesBehind(store, aScope(), 3)).length, 2);
  t.is((await changesBehind(store, aScope(), 3))[0]?.previous()?.revision, 3);
  machine.disk = backup;
  const older = machine.open();
  t.is(older.revisions.compacted, 0);
  t.is((await changesBehind(older, aScope(), 0)).length, 5);
});

test('the same seed and the same pushes produce the same store', async (t) => {
  const texts = async (): Promise<readonly unknown[]> => {
    const machine = new Machine(3);
    const store = machine.open();
    await machine.done(store.writer.lane().push(received));
    return [
      store.cacheId,
      store.revisions.format(store.revisions.published),
      [...store.state.slices],
      [...store.state.shards],
      [...store.state.links],
    ];
  };

  t.deepEqual(await texts(), await texts());
});
