/** A pause of this process while it follows etcd, on a watch and a clock that the test moves. */
import { test } from '../../../support/test.js';
import type { EtcdClient, WatchListener } from '../../../../src/store/etcd/client.js';
import { Follower } from '../../../../src/store/etcd/follower.js';
import { silent } from '../../../support/test-store.js';
import { ManualClock } from '../../../support/store/manual-clock.js';

const range = { key: Buffer.from('/x/'), rangeEnd: Buffer.from('/x0') };
const announced = { revision: 5, created: true, canceled: false, compacted: 0, reason: '', isFragment: false, events: [] };

test('a watch is given up after four seconds of silence, and a pause of this process is none', async (t) => {
  const clock = new ManualClock();
  const watches: WatchListener[] = [];
  const client = {
    endpoint: 'http://127.0.0.1:1',
    moveOn: () => {},
    revision: async () => 5,
    range: async () => ({ revision: 5, kvs: [], more: false, count: 0 }),
    watch: (_: unknown, listener: WatchListener) => {
      watches.push(listener);
      return { askProgress: () => {}, pause: () => {}, resume: () => {}, close: () => {} };
    },
  } as unknown as EtcdClient;
  const logged: unknown[] = [];
  const log = { ...silent, warn: (_: string, fields?: object) => void logged.push(fields) };
  const follower = await Follower.open(range, { client, clock, log, take: () => {}, isKept: async () => true }, 0);
  t.teardown(() => follower.close());
  follower.begin();
  watches[0]!.received(announced);
  clock.advance(500);

  clock.skip(60_000);
  clock.advance(0);
  watches[0]!.received({ ...announced, revision: 7, created: false });
  await follower.reach(7);
  t.deepEqual(logged, []);

  clock.advance(3_900);
  await Promise.resolve();
  t.deepEqual(logged, []);
  clock.advance(1_100);
  await Promise.resolve();
  t.is(logged.length, 1);
});
