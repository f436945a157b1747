import { test } from '../../support/test.js';
import { expired, Refused } from '../../../src/domain/errors.js';
import type { ListEncoding } from '../../../src/domain/ports.js';
import { Pace } from '../../../src/domain/base/pace.js';
import { SharedSnapshots } from '../../../src/watch/shared-snapshots.js';
import type { Scope } from '../../../src/domain/scope.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aScope } from '../../support/objects.js';
import { everything, selecting } from './a-hub.js';
import { MemoryStore } from './memory-store.js';

type Counted = ListEncoding & { pages: number };

function names(id = 'names'): Counted {
  const encoding: Counted = {
    id,
    pages: 0,
    encode: (objects) => {
      encoding.pages += 1;
      return Buffer.from(objects.map(({ key, revision }) => `${key.name}@${revision} `).join(''));
    },
  };
  return encoding;
}

function someStore(count: number): MemoryStore {
  const store = new MemoryStore();
  for (let i = 0; i < count; i++) store.commit({ put: { name: `n${i}` }, labels: { odd: String(i % 2) } });
  return store;
}

function sharedOf(
  store: MemoryStore,
  { sharedBytesMax = 10_000_000, onShared = () => {}, clock = new ManualClock() }: Partial<SharedOptions> = {},
): SharedSnapshots {
  const changedAt = (scope: Scope): number => store.changedAt(scope);
  return new SharedSnapshots(
    { objects: store, revisions: store, clock, pace: new Pace(10, setImmediate), changedAt },
    { sharedBytesMax },
    onShared,
  );
}

type SharedOptions = Readonly<{ sharedBytesMax: number; onShared: (chunks: number) => void; clock: ManualClock }>;

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

function textOf(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString().trim();
}

test('readers that start together share the bytes of the pages', async (t) => {
  const store = someStore(6);
  let shared = 0;
  const snapshots = sharedOf(store, { onShared: (chunks) => (shared += chunks) });
  const encoding = names();

  const read = await Promise.all(Array.from({ length: 5 }, () => gather(snapshots.chunks(aScope(), everything, 6, encoding))));

  t.is(textOf(read[0]!), 'n0@1 n1@2 n2@3 n3@4 n4@5 n5@6');
  for (const chunks of read) t.true(chunks.every((chunk, i) => chunk === read[0]?.[i]));
  t.is(encoding.pages, 3);
  t.is(store.pagesRead, 3);
  t.is(shared, 12);
  t.is(store.openSnapshots, 0);
});

test('readers that differ in scope, selector, revision or encoding share nothing', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store, { onShared: () => t.fail() });

  const read = await Promise.all([
    gather(snapshots.chunks(aScope(), everything, 4, names())),
    gather(snapshots.chunks(aScope({ cluster: 'acme' }), everything, 4, names())),
    gather(snapshots.chunks(aScope(), selecting('odd=1'), 4, names())),
    gather(snapshots.chunks(aScope(), everything, 3, names())),
    gather(snapshots.chunks(aScope(), everything, 4, names('other'))),
  ]);

  t.deepEqual(read.map(textOf), ['n0@1 n1@2 n2@3 n3@4', 'n0@1 n1@2 n2@3 n3@4', 'n1@2 n3@4', 'n0@1 n1@2 n2@3', 'n0@1 n1@2 n2@3 n3@4']);
});

test('a late reader reads a page that the bound has evicted again, with the same content', async (t) => {
  const store = someStore(6);
  const snapshots = sharedOf(store, { sharedBytesMax: 15 });
  const slow = snapshots.chunks(aScope(), everything, 6, names());
  const first = await slow.next();

  const fast = await gather(snapshots.chunks(aScope(), everything, 6, names()));
  const pagesBefore = store.pagesRead;
  const rest = await gather({ [Symbol.asyncIterator]: () => slow });

  t.is(textOf([first.value!, ...rest]), textOf(fast));
  t.true(store.pagesRead > pagesBefore);
  t.is(store.openSnapshots, 0);
});

test('if reading a page fails, other readers try themselves; each gets its own error, and the next request tries again', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store);
  const waiting = snapshots.chunks(aScope(), everything, 4, names());
  await waiting.next();
  store.between = async () => {
    throw new Refused(expired('held too long'));
  };

  const failed = await Promise.allSettled(
    Array.from({ length: 3 }, () => gather(snapshots.chunks(aScope(), selecting('odd'), 4, names()))),
  );
  store.between = async () => {};
  const again = await gather(snapshots.chunks(aScope(), selecting('odd'), 4, names()));

  t.true(failed.every(({ status }) => status === 'rejected'));
  t.is(textOf(again), 'n0@1 n1@2 n2@3 n3@4');
  await waiting.return(undefined);
  t.is(store.openSnapshots, 0);
});

test('every reader has its own snapshot, and closes it when it leaves early', async (t) => {
  const store = someStore(6);
  const snapshots = sharedOf(store);
  const [one, other] = [snapshots.chunks(aScope(), everything, 6, names()), snapshots.chunks(aScope(), everything, 6, names())];
  await one.next();
  await other.next();

  t.is(store.openSnapshots, 2);
  await one.return(undefined);
  t.is(store.openSnapshots, 1);
  await other.return(undefined);
  t.is(store.openSnapshots, 0);
});

test('a page without a selected object is an empty chunk, so that its reader can stop', async (t) => {
  const store = someStore(6);
  const snapshots = sharedOf(store);
  const encoding = names();

  t.is(textOf(await gather(snapshots.chunks(aScope(), selecting('odd=5'), 6, encoding))), '');
  t.deepEqual(
    (await gather(snapshots.chunks(aScope({ cluster: 'none' }), everything, 6, encoding))).map(({ length }) => length),
    [0, 0, 0],
  );
  t.is(encoding.pages, 0);
});

test('readers whose pages are empty read a few of them in each turn of the event loop', async (t) => {
  const store = someStore(6);
  const turns: (() => void)[] = [];
  const pace = new Pace(1_000, (task) => turns.push(task));
  const parts = { objects: store, revisions: store, clock: new ManualClock(), pace, changedAt: (scope: Scope) => store.changedAt(scope) };
  const snapshots = new SharedSnapshots(parts, { sharedBytesMax: 10_000_000 }, () => {});
  const reading = Promise.all(
    Array.from({ length: 20 }, (_, i) => gather(snapshots.chunks(aScope(), selecting(`odd=${i + 2}`), 6, names()))),
  );
  await settled();
  const read: number[] = [];

  while (turns.length > 0) {
    const before = store.pagesRead;
    turns.shift()!();
    await settled();
    read.push(store.pagesRead - before);
  }

  await reading;
  t.is(store.pagesRead, 20 * 3);
  t.true(
    read.every((pages) => pages <= 4),
    read.join(' '),
  );
});

/** Runs everything that is ready without a turn of the event loop. */
async function settled(): Promise<void> {
  for (let i = 0; i < 100; i += 1) await Promise.resolve();
}

test('later writes are not in the pages, because a snapshot shows its revision', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store);
  const chunks = snapshots.chunks(aScope(), everything, 4, names());
  const first = await chunks.next();
  store.commit({ put: { name: 'n3' } }, { delete: { name: 'n2' } }, { put: { name: 'n9' } });

  t.is(textOf([first.value!, ...(await gather({ [Symbol.asyncIterator]: () => chunks }))]), 'n0@1 n1@2 n2@3 n3@4');
});

test('whatever is written elsewhere, readers of a view share its pages until its type changes', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store);
  const encoding = names();
  const all = aScope({ shard: '*', cluster: '*' });

  await gather(snapshots.chunks(all, everything, store.published, encoding));
  const first = await gather(snapshots.chunks(all, everything, store.published, encoding));
  store.commit({ put: { resource: 'others', name: 'other' } });
  const second = await gather(snapshots.chunks(all, everything, store.published, encoding));
  store.commit({ delete: { name: 'n0' } });
  const third = await gather(snapshots.chunks(all, everything, store.published, encoding));

  t.true(first.length > 1 && second.every((chunk, i) => chunk === first[i]));
  t.is(textOf(third), textOf(first).slice(textOf(first).indexOf(' ') + 1));
});

test('from the second reader on, pages are kept for ten seconds without a reader', async (t) => {
  const clock = new ManualClock();
  const store = someStore(4);
  const snapshots = sharedOf(store, { clock });
  const pagesRead = async (): Promise<number> => {
    const before = store.pagesRead;
    await gather(snapshots.chunks(aScope(), everything, 4, names()));
    return store.pagesRead - before;
  };

  t.is(await pagesRead(), 2);
  t.deepEqual([store.openSnapshots, clock.pending], [0, 1]);
  clock.advance(9_999);
  t.is(await pagesRead(), 2, 'the first is alone, so nothing of it is kept');
  clock.advance(9_999);
  t.is(await pagesRead(), 0);
  clock.advance(10_000);
  t.is(clock.pending, 0);
  t.deepEqual([await pagesRead(), await pagesRead(), await pagesRead()], [2, 2, 0]);
});

test('500 views without readers and with few pages are remembered, beside views that share much', async (t) => {
  const clock = new ManualClock();
  const store = new MemoryStore();
  for (let i = 0; i < 4; i++) store.commit({ put: { name: `n${i}`.padEnd(30_000, '-') }, labels: { odd: String(i % 2) } });
  const snapshots = sharedOf(store, { clock });
  const pagesReadOf = async (selector: string): Promise<number> => {
    const before = store.pagesRead;
    await gather(snapshots.chunks(aScope(), selecting(selector), 4, names()));
    return store.pagesRead - before;
  };
  for (let i = 0; i < 2; i++) await pagesReadOf('odd');
  await pagesReadOf('first');

  for (let i = 0; i < 500; i++) await pagesReadOf(`none=${i}`);

  t.is(clock.pending, 501);
  t.is(await pagesReadOf('odd'), 0, 'it keeps 120 kB');
  t.deepEqual([await pagesReadOf('none=499'), await pagesReadOf('none=499')], [2, 0], 'it was remembered');
  t.deepEqual([await pagesReadOf('first'), await pagesReadOf('first')], [2, 2], 'it was forgotten');
});

test('views that are read once evict nothing of shared views', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store, { sharedBytesMax: 50 });
  const read = (value: number): Promise<unknown> => gather(snapshots.chunks(aScope(), selecting(`odd!=${value}`), 4, names()));
  for (const value of [2, 2]) await read(value);

  for (let value = 3; value < 20; value++) await read(value);
  const before = store.pagesRead;
  await read(2);

  t.is(store.pagesRead, before);
});

test('a list longer than the bound evicts shared pages once, and then keeps nothing', async (t) => {
  const store = someStore(40);
  let shares = 0;
  const snapshots = sharedOf(store, { sharedBytesMax: 40, onShared: (chunks) => (shares += chunks) });
  const short = (): AsyncGenerator<Uint8Array> => snapshots.chunks(aScope(), everything, 4, names());
  await gather(snapshots.chunks(aScope(), everything, 40, names()));
  const long = snapshots.chunks(aScope(), everything, 40, names());
  for (let i = 0; i < 6; i++) await long.next();
  await gather(short());
  const staying = short();
  await staying.next();
  await staying.next();

  for (let i = 0; i < 10; i++) await long.next();
  await gather(short());

  t.is(shares, 2);
  await Promise.all([long.return(undefined), staying.return(undefined)]);
  t.is(store.openSnapshots, 0);
});

test('readers of a list longer than the bound share its pages while they read side by side', async (t) => {
  const store = someStore(20);
  const snapshots = sharedOf(store, { sharedBytesMax: 30 });

  const [one, other] = await Promise.all([1, 2].map(() => gather(snapshots.chunks(aScope(), everything, 20, names()))));

  t.true(one?.every((chunk, i) => chunk === other?.[i]));
});

test('a slow reader whose revision is compacted does not keep others from reading their pages themselves', async (t) => {
  const store = someStore(6);
  const snapshots = sharedOf(store, { sharedBytesMax: 1 });
  const slow = snapshots.chunks(aScope(), everything, 6, names());
  await slow.next();
  store.commit({ put: { resource: 'others', name: 'other' } });
  store.compacted = 7;

  const [failed, read] = await Promise.allSettled([slow.next(), gather(snapshots.chunks(aScope(), everything, 7, names()))]);

  t.is(failed.status, 'rejected');
  t.is(read.status === 'fulfilled' ? textOf(read.value) : '', 'n0@1 n1@2 n2@3 n3@4 n4@5 n5@6');
});

test('a reader of the present state begins at the published revision or later, and a single reader never waits', async (t) => {
  const store = someStore(2);
  const snapshots = sharedOf(store);
  const read = async (): Promise<string> => {
    const { revision, chunks } = await snapshots.present(aScope(), everything, names());
    return `${revision}: ${textOf(await gather(chunks))}`;
  };

  t.is(await read(), '2: n0@1 n1@2');
  store.commit({ put: { name: 'n2' } });
  t.is(await read(), '3: n0@1 n1@2 n2@3', 'the one before has read');
  store.commit({ put: { resource: 'others', name: 'other' } });
  t.is(await read(), '4: n0@1 n1@2 n2@3');
});

test('readers of the present state that arrive during a reading begin together once it has ended, whatever their revisions', async (t) => {
  const store = someStore(6);
  const snapshots = sharedOf(store);
  const first = await snapshots.present(aScope(), everything, names());
  const reading = first.chunks[Symbol.asyncIterator]();
  await reading.next();
  const later = [1, 2, 3].map(async (i) => {
    store.commit({ put: { name: `n${5 + i}` } });
    const { revision, chunks } = await snapshots.present(aScope(), everything, names());
    return { revision, chunks: await gather(chunks) };
  });

  t.is(await Promise.race([Promise.any(later), new Promise((resolve) => setTimeout(resolve, 20, 'they wait'))]), 'they wait');
  await reading.return?.();
  const [one, ...others] = await Promise.all(later);

  t.is(one?.revision, 9);
  for (const { revision, chunks } of others) {
    t.is(revision, 9);
    t.true(chunks.every((chunk, i) => chunk === one?.chunks[i]));
  }
});

test('pages in a representation of one reader’s own are not kept, and evict nothing', async (t) => {
  const store = someStore(4);
  const snapshots = sharedOf(store, { sharedBytesMax: 150_000 });
  const encoding = names();
  for (let i = 0; i < 2; i += 1) await gather((await snapshots.present(aScope(), everything, encoding)).chunks);
  const read = encoding.pages;

  for (let i = 0; i < 5; i += 1)
    await gather((await snapshots.present(aScope(), everything, { ...names(), id: `own ${i}`, isOwn: true })).chunks);
  await gather((await snapshots.present(aScope(), everything, encoding)).chunks);

  t.is(encoding.pages, read);
});

test('after close nothing is kept, and no timer runs', async (t) => {
  const store = someStore(4);
  const clock = new ManualClock();
  const snapshots = sharedOf(store, { clock });
  await gather((await snapshots.present(aScope(), everything, names())).chunks);
  t.is(clock.pending, 1);
  const reading = snapshots.chunks(aScope(), everything, store.published, names());
  await reading.next();

  snapshots.close();
  await reading.return(undefined);

  t.is(clock.pending, 0);
});
