import { test } from '../../support/test.js';
import type { MemoryReservation } from '../../../src/domain/base/memory-reservation.js';
import { aScope } from '../../support/objects.js';
import { endlessMemory } from '../../support/an-exchange.js';
import { aHub, aWatch, everything, initial, selecting } from './a-hub.js';
import type { MemoryStore } from './memory-store.js';
import { plainEvents, Reader, received, turns } from './plain-events.js';

const one = { put: { name: 'one' } };

/** Runs the task once, in the next pause of the store, which lasts until the task is done. */
function inPause(store: MemoryStore, task: () => unknown): void {
  store.between = async () => {
    store.between = async () => {};
    await task();
  };
}

test('commits made while a watch catches up follow the changes that it missed, once and without a hole', async (t) => {
  const { hub, store } = aHub();
  for (let i = 1; i <= 5; i++) store.commit({ put: { name: `n${i}` } });
  inPause(store, () => store.commit({ put: { name: 'n1' } }, { delete: { name: 'n2' } }));

  const seen = await new Reader(hub.open(aWatch({ start: { kind: 'after', revision: 1 } }))).drain();

  t.deepEqual(seen, ['ADDED n2@2', 'ADDED n3@3', 'ADDED n4@4', 'ADDED n5@5', 'MODIFIED n1@6', 'DELETED n2@7']);
});

test('commits made during the initial events follow the bookmark that ends those', async (t) => {
  const { hub, store } = aHub();
  for (let i = 1; i <= 3; i++) store.commit({ put: { name: `n${i}` } });
  inPause(store, () => store.commit({ put: { name: 'n3' } }, { put: { name: 'n4' } }));

  const seen = await new Reader(hub.open(aWatch({ start: initial }))).drain();

  t.deepEqual(seen, ['ADDED n1@1', 'ADDED n2@2', 'ADDED n3@3', 'BOOKMARK@3!', 'MODIFIED n3@4', 'ADDED n4@5']);
});

test('a watch that begins with initial events and is no WatchList gets no mark of their end, with bookmarks or without', async (t) => {
  const { hub, store } = aHub();
  store.commit(one);

  for (const bookmarks of [false, true])
    t.deepEqual(await new Reader(hub.open(aWatch({ start: { ...initial, endsWithBookmark: false }, bookmarks }))).drain(), ['ADDED one@1']);
});

test('a live watcher whose queue is full reads on from the change log, then is live again', async (t) => {
  const { hub, store, counts } = aHub({ queueBytesMax: 300 });
  const reader = new Reader(hub.open(aWatch({ start: { kind: 'after', revision: 0 } })));
  await reader.drain();

  for (let i = 1; i <= 20; i++) await handedOut(() => store.commit({ put: { name: `n${i}` } }));
  const caughtUp = await reader.drain();
  store.commit({ put: { name: 'live' } });
  const live = await reader.drain();

  t.deepEqual(
    caughtUp,
    Array.from({ length: 20 }, (_, i) => `ADDED n${i + 1}@${i + 1}`),
  );
  t.is(live.at(-1), 'ADDED live@21');
  t.is(counts.fellBack, 1);
});

test('one event larger than the queue is still delivered when nothing else waits', async (t) => {
  const { hub, store, counts } = aHub({ queueBytesMax: 1 });
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();

  store.commit(one);

  t.deepEqual(await reader.drain(), ['ADDED one@1']);
  t.is(counts.fellBack, 0);
});

test('commits made during the initial events follow them, even if they are more than a queue may hold', async (t) => {
  const { hub, store } = aHub({ queueBytesMax: 200 });
  for (let i = 1; i <= 6; i++) store.commit({ put: { name: `n${i}` } });
  inPause(store, () => {
    for (let i = 1; i <= 10; i++) store.commit({ put: { name: `m${i}` } });
  });

  const seen = await new Reader(hub.open(aWatch({ start: initial }))).drain();

  const expected = [
    ...Array.from({ length: 6 }, (_, i) => `ADDED n${i + 1}@${i + 1}`),
    'BOOKMARK@6!',
    ...Array.from({ length: 10 }, (_, i) => `ADDED m${i + 1}@${i + 7}`),
  ];
  t.deepEqual(seen, expected);
});

test('a watcher that never catches up, because more keeps being committed, still gets everything once', async (t) => {
  const { hub, store } = aHub({ queueBytesMax: 150 });
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();
  let left = 12;
  store.between = async () => {
    if (left-- > 0) for (let i = 0; i < 5; i++) store.commit({ put: { name: `r${left}-${i}` } });
  };

  for (let i = 0; i < 10; i++) store.commit({ put: { name: `n${i}` } });
  await reader.drain();

  t.deepEqual(
    reader.events.map(({ position }) => Number(position)),
    store.log.map(({ revision }) => revision),
  );
});

test('a watch whose scope is quiet keeps up with the store, so it has missed nothing when it falls behind later', async (t) => {
  const { hub, store, counts } = aHub({ queueBytesMax: 150 });
  const reader = new Reader(hub.open(aWatch({ scope: aScope({ cluster: 'quiet' }), bookmarks: false })));
  await reader.drain();

  for (let i = 0; i < 20; i++) store.commit({ put: { name: `n${i}` } });
  await reader.drain();
  store.compacted = 20;
  for (let i = 0; i < 5; i++) await handedOut(() => store.commit({ put: { cluster: 'quiet', name: `q${i}` } }));

  t.deepEqual(
    await reader.drain(),
    [0, 1, 2, 3, 4].map((i) => `ADDED q${i}@${21 + i}`),
  );
  t.is(counts.fellBack, 1);
});

test('a watcher that falls behind the compacted revision gets one 410 event and the end, and no gap', async (t) => {
  const { hub, store } = aHub({ queueBytesMax: 150 });
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();

  for (let i = 0; i < 10; i++) await handedOut(() => store.commit({ put: { name: `n${i}` } }));
  store.compacted = 8;
  const seen = await reader.drain();

  t.is(seen.at(-1), 'ERROR 410');
  t.true(reader.ended);
  t.is(hub.openWatches, 0);
});

test('a watch from a compacted revision gets one 410 event only', async (t) => {
  const { hub, store } = aHub();
  store.commit(one, { put: { name: 'two' } });
  store.compacted = 2;

  t.deepEqual(await new Reader(hub.open(aWatch({ start: { kind: 'after', revision: 1 } }))).drain(), ['ERROR 410']);
  t.deepEqual(await new Reader(hub.open(aWatch({ start: { kind: 'after', revision: 2 } }))).drain(), []);
});

test('a bookmark waits behind the queued events, and none is sent while a watcher catches up', async (t) => {
  const { hub, store, clock } = aHub();
  for (let i = 1; i <= 3; i++) store.commit({ put: { name: `n${i}` } });
  inPause(store, () => {
    clock.advance(60_000);
    store.commit({ put: { name: 'late' } });
  });
  const reader = new Reader(hub.open(aWatch()));

  t.deepEqual(await reader.drain(), ['ADDED n1@1', 'ADDED n2@2', 'ADDED n3@3', 'ADDED late@4']);
  await handedOut(() => store.commit({ put: { name: 'queued' } }));
  clock.advance(60_000);
  store.commit({ put: { name: 'behind' } });
  t.deepEqual((await reader.drain()).slice(4), ['ADDED queued@5', 'BOOKMARK@5', 'ADDED behind@6']);
});

test('a bookmark that finds the queue full makes the watcher read on instead of overtaking the queue', async (t) => {
  const { hub, store, clock } = aHub({ queueBytesMax: 150 });
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();

  await handedOut(() => store.commit({ put: { name: 'a' } }));
  await handedOut(() => store.commit({ put: { name: 'b' } }));
  await handedOut(() => store.commit({ put: { name: 'c' } }));
  clock.advance(60_000);

  t.deepEqual(await reader.drain(), ['ADDED a@1', 'ADDED b@2', 'ADDED c@3']);
  clock.advance(60_000);
  t.deepEqual((await reader.drain()).slice(3), ['BOOKMARK@3']);
});

test('a watch that is ended while live sends what is queued, then ends', async (t) => {
  const { hub, store } = aHub();
  const open = hub.open(aWatch());
  const reader = new Reader(open);
  await reader.drain();

  store.commit(one);
  store.commit({ put: { name: 'two' } });
  open.end();

  t.deepEqual(await reader.drain(), ['ADDED one@1', 'ADDED two@2']);
  t.true(reader.ended);
});

test('a watch that is ended while it catches up sends only what it has read, and its client resumes there', async (t) => {
  const { hub, store } = aHub();
  for (let i = 1; i <= 6; i++) store.commit({ put: { name: `n${i}` } });
  const open = hub.open(aWatch());
  const reader = new Reader(open);
  await reader.step();
  inPause(store, async () => {
    store.commit({ put: { name: 'live' } });
    open.end();
    await turns(2);
  });

  const seen = await reader.drain();

  t.deepEqual(seen, ['ADDED n1@1', 'ADDED n2@2']);
  t.true(reader.ended);
});

test('a watch that is ended during its initial events sends nothing that would look like their end', async (t) => {
  const { hub, store } = aHub();
  for (let i = 1; i <= 6; i++) store.commit({ put: { name: `n${i}` } });
  const open = hub.open(aWatch({ start: initial }));
  const reader = new Reader(open);
  await reader.step();
  inPause(store, () => {
    store.commit({ put: { name: 'live' } });
    open.end();
  });

  const seen = await reader.drain();

  t.true(reader.ended);
  t.true(
    seen.every((event) => /^ADDED n\d@\d$/.test(event)),
    seen.join(),
  );
});

test('one delivery is bounded, however much is queued', async (t) => {
  const { hub, store } = aHub({ pieceBytesMax: 150 });
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();

  for (let i = 0; i < 6; i++) store.commit({ put: { name: `n${i}` } });
  await reader.step();

  t.true(reader.events.length < 6);
  t.is((await reader.drain()).length, 6);
});

test('a selector applies to initial events, history and live events, and to objects that enter or leave it', async (t) => {
  const { hub, store } = aHub();
  const red = { team: 'red' };
  store.commit({ put: { name: 'a' }, labels: red }, { put: { name: 'b' } });
  inPause(store, () => store.commit({ put: { name: 'b' }, labels: red }, { put: { name: 'a' } }));

  const seen = await new Reader(hub.open(aWatch({ start: initial, selector: selecting('team=red') }))).drain();

  t.deepEqual(seen, ['ADDED a@1', 'BOOKMARK@2!', 'ADDED b@3', 'DELETED a@4']);
});

test('a WatchList from an old revision receives the objects that were deleted or left the selector since', async (t) => {
  const { hub, store } = aHub();
  const red = { team: 'red' };
  store.commit({ put: { name: 'stays' }, labels: red }, { put: { name: 'deleted' }, labels: red }, { put: { name: 'flips' }, labels: red });
  store.commit({ delete: { name: 'deleted' } }, { put: { name: 'flips' } }, { put: { name: 'new' }, labels: red });

  const seen = await new Reader(hub.open(aWatch({ start: { ...initial, forgetSince: 3 }, selector: selecting('team=red') }))).drain();

  t.deepEqual(seen, ['ADDED new@6', 'ADDED stays@1', 'BOOKMARK@6!', 'DELETED flips@6', 'DELETED deleted@6']);
});

test('a recreated key and a key that is on another shard are not reported as gone', async (t) => {
  const { hub, store } = aHub();
  store.commit({ put: { name: 'again' } }, { put: { name: 'moved', shard: 'amber' } }, { put: { name: 'gone' } });
  store.commit({ delete: { name: 'again' } }, { put: { name: 'again' } }, { put: { name: 'moved', shard: 'birch' } });
  store.commit({ delete: { name: 'moved', shard: 'amber' } }, { delete: { name: 'gone' } });

  const seen = await new Reader(hub.open(aWatch({ start: { ...initial, forgetSince: 3 } }))).drain();

  t.deepEqual(
    seen.filter((event) => event.startsWith('DELETED')),
    ['DELETED gone@8'],
  );
});

test('a key that left one shard and changed on another after the bookmark is in the view, and not reported as gone', async (t) => {
  const { hub, store } = aHub();
  store.commit({ put: { name: 'both', shard: 'amber' } }, { put: { name: 'both', shard: 'birch' } });
  store.commit({ delete: { name: 'both', shard: 'amber' } });
  const reader = new Reader(hub.open(aWatch({ start: { ...initial, forgetSince: 2 } })));
  while (!received(reader.events).includes('ADDED both@2')) await reader.step();
  store.commit({ put: { name: 'both', shard: 'birch' } });

  t.deepEqual(await reader.drain(), ['ADDED both@2', 'BOOKMARK@3!', 'MODIFIED both@4']);
});

test('an object that changed and is pages away from the beginning of its cluster is not reported as gone', async (t) => {
  const { hub, store } = aHub();
  for (let i = 10; i < 40; i++) store.commit({ put: { name: `n${i}` } });
  for (let i = 10; i < 40; i++) store.commit({ put: { name: `n${i}` } });

  const seen = await new Reader(hub.open(aWatch({ start: { ...initial, forgetSince: 30 } }))).drain();

  t.deepEqual(
    seen.filter((event) => event.startsWith('DELETED')),
    [],
  );
  t.is(store.openSnapshots, 0);
});

test('objects that change while a WatchList receives what is gone are taken as of the bookmark', async (t) => {
  const { hub, store } = aHub();
  store.commit({ put: { name: 'a' } }, { put: { name: 'b' } }, { put: { name: 'c' } });
  store.commit({ put: { name: 'a' } }, { put: { name: 'b' } }, { delete: { name: 'c' } });
  const reader = new Reader(hub.open(aWatch({ start: { ...initial, forgetSince: 3 } })));
  while (!received(reader.events).includes('BOOKMARK@6!')) await reader.step();
  store.commit({ put: { name: 'a' } }, { delete: { name: 'b' } }, { put: { name: 'c' } });

  const seen = await reader.drain();

  t.deepEqual(seen.slice(2), ['BOOKMARK@6!', 'DELETED c@6', 'MODIFIED a@7', 'DELETED b@8', 'ADDED c@9']);
});

/** Has memory when the test says so, and records what is held while a watch waits for it. */
class ScarceMemory implements MemoryReservation {
  held = 0;
  isFull = false;
  readonly heldAtWaits: number[] = [];
  #grants: (() => void)[] = [];

  tryReserve(bytes: number): boolean {
    if (!this.isFull) this.held += bytes;
    return !this.isFull;
  }

  reserve(bytes: number): Promise<boolean> {
    if (this.tryReserve(bytes)) return Promise.resolve(true);
    this.heldAtWaits.push(this.held);
    return new Promise((resolve) =>
      this.#grants.push(() => {
        this.held += bytes;
        resolve(true);
      }),
    );
  }

  add(bytes: number): void {
    this.held += bytes;
  }

  release(bytes: number): void {
    this.held -= bytes;
  }

  reserveExactly(): void {}

  grant(): void {
    for (const grant of this.#grants.splice(0)) grant();
  }
}

test('a watch that waits for room holds none, even if the room that it asked for is too little by then', async (t) => {
  const { hub, store } = aHub();
  const memory = new ScarceMemory();
  const reader = new Reader(hub.open(aWatch({ memory })));
  await reader.drain();

  memory.isFull = true;
  store.commit({ put: { name: 'n1' } });
  await reader.drain();
  for (let i = 2; i <= 5; i++) store.commit({ put: { name: `n${i}` } });
  memory.grant();
  await reader.drain();
  t.deepEqual(memory.heldAtWaits, [0, 0]);
  memory.isFull = false;
  memory.grant();

  t.deepEqual(
    await reader.drain(),
    [1, 2, 3, 4, 5].map((i) => `ADDED n${i}@${i}`),
  );
});

test('a watch that is ended while it waits for room ends at once, and returns room that is granted later', async (t) => {
  const { hub, store } = aHub();
  const memory = new ScarceMemory();
  const open = hub.open(aWatch({ memory }));
  const reader = new Reader(open);
  await reader.drain();
  memory.isFull = true;
  store.commit(one);
  await reader.drain();

  open.end();
  await reader.drain();

  t.true(reader.ended);
  t.is(hub.openWatches, 0);
  memory.grant();
  await turns(1);
  t.is(memory.held, 0);
});

test('a reader that leaves at any point leaves nothing open', async (t) => {
  for (const steps of [0, 1, 2, 3, 5]) {
    const { hub, store, clock } = aHub();
    for (let i = 1; i <= 6; i++) store.commit({ put: { name: `n${i}` } });
    const timers = clock.timers;
    const open = hub.open(aWatch({ start: initial }));
    const reader = new Reader(open);
    for (let i = 0; i < steps; i++) await reader.step();

    open.end();
    await reader.leave();
    store.commit(one);
    await turns(5);
    // The hub remembers the view for this long.
    clock.advance(10_000);

    t.is(hub.openWatches, 0);
    t.is(store.openSnapshots, 0);
    t.is(clock.timers, timers);
  }
});

test('a watch that is ended shows nothing that is published later, in the same tick or after it', async (t) => {
  const { hub, store } = aHub();
  const open = hub.open(aWatch({ bookmarks: false }));
  const reader = new Reader(open);
  const drained = reader.drain();
  await turns(3);

  store.commit(one);
  open.end();
  store.commit({ put: { name: 'later' } });
  await turns(1);
  store.commit({ put: { name: 'much-later' } });

  t.deepEqual(await drained, ['ADDED one@1']);
});

test('an abandoned watch does not count as fallen back, whatever is published until it has ended', async (t) => {
  const { hub, store, counts } = aHub();
  let isClosed = false;
  const memory = { ...endlessMemory, tryTake: () => !isClosed };
  const open = hub.open(aWatch({ memory }));
  const drained = new Reader(open).drain();
  await turns(3);

  isClosed = true;
  open.abandon();
  store.commit(one);
  await drained;

  t.deepEqual([counts.fellBack, hub.openWatches], [0, 0]);
});

test('a watch ignores other types, clusters and shards', async (t) => {
  const { hub, store } = aHub();
  const representation = plainEvents();
  const reader = new Reader(hub.open(aWatch({ scope: aScope({ cluster: 'acme', shard: 'amber' }), representation, selector: everything })));
  await reader.drain();

  store.commit(
    { put: { cluster: 'beta' } },
    { put: { shard: 'birch' } },
    { put: { resource: 'apiconversions' } },
    { put: { name: 'mine' } },
  );

  t.deepEqual(await reader.drain(), ['ADDED mine@4']);
});

/**
 * Resolves once the watches were offered what `commit` publishes, so that the next commit is
 * offered separately.
 */
async function handedOut(commit: () => void): Promise<void> {
  commit();
  await turns(10);
}
