/**
 * When a follower abandons a watch of etcd, with a fake client and a clock that the test advances.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../../support/test.js';
import type { EtcdClient, WatchListener } from '../../../../src/store/etcd/client.js';
import { Follower } from '../../../../src/store/etcd/follower.js';
import type { WatchResponse } from '../../../../src/store/etcd/rpc.js';
import { silent } from '../../../support/test-store.js';
import { ManualClock } from '../../../support/store/manual-clock.js';

const range = { key: Buffer.from('/x/'), rangeEnd: Buffer.from('/x0') };
const announced = { revision: 5, created: true, canceled: false, compacted: 0, reason: '', isFragment: false, events: [] };
const progress = (revision: number): WatchResponse => ({ ...announced, revision, created: false });

/** A follower with an open watch of an etcd at revision 5. */
async function following(t: ExecutionContext) {
  const clock = new ManualClock();
  const watches: WatchListener[] = [];
  const [movedOn, logged]: [string[], unknown[]] = [[], []];
  const client = {
    endpoint: 'http://127.0.0.1:1',
    moveOn: (endpoint: string) => void movedOn.push(endpoint),
    revision: async () => 5,
    range: async () => ({ revision: 5, kvs: [], more: false, count: 0 }),
    watch: (_: unknown, listener: WatchListener) => {
      watches.push(listener);
      return { requestProgress: () => {}, pause: () => {}, resume: () => {}, close: () => {} };
    },
  } as unknown as EtcdClient;
  const log = { ...silent, warn: (_: string, fields?: object) => void logged.push(fields) };
  const follower = await Follower.open(range, { client, clock, log, apply: () => {}, isKept: async () => true }, 0);
  t.teardown(() => follower.close());
  follower.begin();
  watches[0]!.received(announced);
  /** Sends this response every second. */
  const answer = async (response: WatchResponse, seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i += 1) {
      clock.advance(1_000);
      watches.at(-1)!.received(response);
      await new Promise(setImmediate);
    }
  };
  return { clock, watches, movedOn, logged, follower, answer };
}

test('a follower abandons a watch after four seconds of silence, and a pause of its own process does not count', async (t) => {
  const { clock, watches, logged, follower } = await following(t);
  clock.advance(500);

  clock.skip(60_000);
  clock.advance(0);
  watches[0]!.received(progress(7));
  await follower.reach(7);
  t.deepEqual(logged, []);

  clock.advance(3_900);
  await Promise.resolve();
  t.deepEqual(logged, []);
  clock.advance(1_100);
  await Promise.resolve();
  t.is(logged.length, 1);
});

test('a follower leaves a member that answers but does not advance while etcd as a whole does', async (t) => {
  const { clock, watches, movedOn, logged, follower, answer } = await following(t);
  await answer(progress(5), 60);
  t.deepEqual(logged, [], 'the follower does not know of any newer revision');
  const heardMs = follower.lastProgressMs;
  const reached = follower.reach(6);

  await answer(progress(5), 6);

  t.deepEqual(movedOn, ['http://127.0.0.1:1']);
  t.is(watches.length, 2);
  t.true(
    clock.now() - follower.lastProgressMs >= 5_000 && follower.lastProgressMs - heardMs <= 1_000,
    'the health check can see the silence',
  );
  watches[1]!.received(announced);
  watches[1]!.received(progress(6));
  await reached;
  t.is(follower.lastProgressMs, clock.now());
});

test('a follower keeps a member that still catches up, or that sends a large change in pieces', async (t) => {
  const { watches, logged, follower, answer } = await following(t);
  const reached = follower.catchUp(20);
  for (const revision of [6, 7, 8]) await answer(progress(revision), 3);
  const value = new Uint8Array(1_000);
  const kv = { key: Buffer.from('/x/a'), value, revision: 20, lease: 0 };
  const piece = { ...progress(20), isFragment: true, events: [{ kind: 'put' as const, kv, previous: undefined }] };
  for (let i = 0; i < 10; i += 1) {
    watches[0]!.received(piece);
    await answer(progress(8), 3);
  }
  watches[0]!.received({ ...piece, isFragment: false });

  await reached;

  t.is(watches.length, 1);
  t.deepEqual(logged, []);
});
