import test from 'ava';
import { expired, Refused } from '../../src/domain/errors.js';
import type { ListEncoding } from '../../src/domain/ports.js';
import { Pace } from '../../src/watch/pace.js';
import { SharedSnapshots } from '../../src/watch/shared-snapshots.js';
import { aScope } from '../support/objects.js';
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

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

function textOf(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString().trim();
}

test('readers that start together share one snapshot and the bytes of its pages', async (t) => {
  const store = someStore(6);
  let shared = 0;
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, (chunks) => (shared += chunks));
  const encoding = names();

  const read = await Promise.all(Array.from({ length: 5 }, () => gather(snapshots.chunks(aScope(), everything, 6, encoding))));

  t.is(textOf(read[0]!), 'n0@1 n1@2 n2@3 n3@4 n4@5 n5@6');
  for (const chunks of read) t.true(chunks.every((chunk, i) => chunk === read[0]?.[i]));
  t.is(encoding.pages, 3);
  t.is(store.pagesRead, 3);
  t.is(shared, 12);
  t.is(store.openSnapshots, 0);
});

test('another scope, selector, revision or encoding shares nothing', async (t) => {
  const store = someStore(4);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, () => t.fail());

  const read = await Promise.all([
    gather(snapshots.chunks(aScope(), everything, 4, names())),
    gather(snapshots.chunks(aScope({ cluster: 'acme' }), everything, 4, names())),
    gather(snapshots.chunks(aScope(), selecting('odd=1'), 4, names())),
    gather(snapshots.chunks(aScope(), everything, 3, names())),
    gather(snapshots.chunks(aScope(), everything, 4, names('other'))),
  ]);

  t.deepEqual(read.map(textOf), ['n0@1 n1@2 n2@3 n3@4', 'n0@1 n1@2 n2@3 n3@4', 'n1@2 n3@4', 'n0@1 n1@2 n2@3', 'n0@1 n1@2 n2@3 n3@4']);
});

test('a late reader reads a page that the bound has pushed out again, with the same content', async (t) => {
  const store = someStore(6);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 15 }, () => {});
  const slow = snapshots.chunks(aScope(), everything, 6, names());
  const first = await slow.next();

  const fast = await gather(snapshots.chunks(aScope(), everything, 6, names()));
  const pagesBefore = store.pagesRead;
  const rest = await gather({ [Symbol.asyncIterator]: () => slow });

  t.is(textOf([first.value!, ...rest]), textOf(fast));
  t.true(store.pagesRead > pagesBefore);
  t.is(store.openSnapshots, 0);
});

test('an error reaches every reader that waits for the page, and the next request tries again', async (t) => {
  const store = someStore(4);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, () => {});
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

test('a reader that goes away half way closes the snapshot only if it was the last', async (t) => {
  const store = someStore(6);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, () => {});
  const [one, other] = [snapshots.chunks(aScope(), everything, 6, names()), snapshots.chunks(aScope(), everything, 6, names())];
  await one.next();
  await other.next();

  await one.return(undefined);
  t.is(store.openSnapshots, 1);
  await other.return(undefined);
  t.is(store.openSnapshots, 0);
});

test('pages without a selected object are skipped, and an empty scope has no chunk', async (t) => {
  const store = someStore(6);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, () => {});
  const encoding = names();

  t.is(textOf(await gather(snapshots.chunks(aScope(), selecting('odd=5'), 6, encoding))), '');
  t.deepEqual(await gather(snapshots.chunks(aScope({ cluster: 'none' }), everything, 6, encoding)), []);
  t.is(encoding.pages, 0);
});

test('later writes are not in the pages: a snapshot is of its revision', async (t) => {
  const store = someStore(4);
  const snapshots = new SharedSnapshots({ objects: store, pace: new Pace(10) }, { sharedBytesMax: 10_000 }, () => {});
  const chunks = snapshots.chunks(aScope(), everything, 4, names());
  const first = await chunks.next();
  store.commit({ put: { name: 'n3' } }, { delete: { name: 'n2' } }, { put: { name: 'n9' } });

  t.is(textOf([first.value!, ...(await gather({ [Symbol.asyncIterator]: () => chunks }))]), 'n0@1 n1@2 n2@3 n3@4');
});
