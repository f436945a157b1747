import { test } from '../../support/test.js';
import { CompactionSchedule } from '../../../src/store/sqlite/compaction-schedule.js';
import type { CompactionOrder } from '../../../src/store/sqlite/compaction.js';
import type { HistoryLimits } from '../../../src/store/compactor.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const limits: HistoryLimits = {
  historyAgeMs: 86_400_000,
  historyChangesMax: 1000,
  historyBytesMax: 1e12,
  tombstoneAgeMs: 1e12,
  tombstonesMax: 1e9,
};

function aSchedule({ historyAgeMs }: Pick<HistoryLimits, 'historyAgeMs'> = limits) {
  const clock = new ManualClock();
  const log = { published: 0, compacted: 0, aged: 0 };
  const orders: CompactionOrder[] = [];
  const raised: number[] = [];
  const schedule = new CompactionSchedule(
    {
      clock,
      state: () => ({ ...log, bytes: 0, agedRevision: log.aged, overdueMs: 0, heldRevision: undefined }),
      agedTombstones: () => 0,
      raise: (compacted) => raised.push(compacted),
      step: (order) => orders.push(order),
    },
    { ...limits, historyAgeMs },
  );
  const stepped = (compacted: number, elapsedMs: number): void => {
    log.compacted = compacted;
    schedule.stepped({ done: true, settled: true, tombstonesFrom: 0 }, elapsedMs);
  };
  /** The remainder of the previous run is compacted first. */
  clock.advance(1000);
  stepped(0, 1);
  orders.length = 0;
  raised.length = 0;
  return { clock, log, orders, raised, schedule, stepped };
}

test('a log within its bounds is not compacted', (t) => {
  const { clock, log, orders, schedule } = aSchedule();
  log.published = 1000;

  schedule.committed(50);
  clock.advance(10_000);

  t.deepEqual(orders, []);
  t.false(schedule.isFirst);
});

test('the first step follows the commit that exceeded a bound, the next one as soon as a tenth of the time allows it', (t) => {
  const { clock, log, orders, raised, schedule, stepped } = aSchedule();
  log.published = 1001;
  schedule.committed(2);
  t.deepEqual(
    orders.map(({ upTo }) => upTo),
    [1],
  );
  t.false(schedule.isFirst, 'nobody waits for it');

  log.published = 1002;
  schedule.committed(2);
  t.is(orders.length, 1, 'one step at a time');
  t.deepEqual(raised, [1, 2], 'but no reader goes below the bound');
  log.published = 1001;
  stepped(1, 4);
  log.published = 1002;
  schedule.committed(2);
  t.is(orders.length, 2, 'an idle schedule goes on at once');
  stepped(1, 4);
  schedule.committed(2);
  clock.advance(30);
  t.is(orders.length, 2, 'it rests');
  clock.advance(1);

  t.is(orders.length, 3);
});

test('a twentieth over a bound, commits wait until compaction has had nine times their time', (t) => {
  const { log, orders, schedule, stepped } = aSchedule();
  log.published = 2000;

  schedule.committed(2);
  const waited: boolean[] = [];
  for (let i = 1; schedule.isFirst; i++) {
    waited.push(true);
    stepped(i, 5);
  }

  t.is(waited.length, 3);
  t.is(orders.length, 3);
  schedule.committed(1);
  t.true(schedule.isFirst, 'compaction comes first again');
});

test('a step works for as much of its time as the disk leaves it', (t) => {
  const { log, orders, schedule } = aSchedule();
  const ofDisk = (syncMs: number): number => {
    orders.length = 0;
    for (let i = 0; i < 40; i++) {
      log.published = 1_000_000;
      schedule.committed(100);
      schedule.stepped({ done: false, settled: false, tombstonesFrom: 0 }, (orders.at(-1)?.budgetMs ?? 0) + syncMs);
    }
    return orders.at(-1)?.budgetMs ?? 0;
  };

  const slow = ofDisk(15);
  const fast = ofDisk(2);

  t.true(slow >= 1 && slow <= 9, `${slow} ms beside a sync of 15 ms`);
  t.true(fast >= 14 && fast <= 22, `${fast} ms beside a sync of 2 ms`);
});

test('a failed step lets commits go on, and is repeated', (t) => {
  const { clock, log, orders, schedule } = aSchedule();
  log.published = 2000;
  schedule.committed(2);
  t.true(schedule.isFirst);

  schedule.failed();
  t.false(schedule.isFirst);
  clock.advance(1000);

  t.is(orders.length, 2);
});

test('history that has become too old is found without any write', (t) => {
  const { clock, log, orders } = aSchedule();
  log.published = 10;
  log.aged = 10;

  clock.advance(1000);

  t.deepEqual(
    orders.map(({ upTo }) => upTo),
    [10],
  );
});

test('files that were still long after a step are checked once a second', (t) => {
  const { clock, orders, schedule } = aSchedule();
  clock.advance(10_000);
  t.deepEqual(orders, []);
  schedule.stepped({ done: true, settled: false, tombstonesFrom: 0 }, 5);

  clock.advance(999);
  t.is(orders.length, 0);
  clock.advance(1);
  t.is(orders.length, 1);
  schedule.stepped({ done: true, settled: true, tombstonesFrom: 0 }, 5);
  clock.advance(10_000);

  t.is(orders.length, 1);
});

test('files that were still long after a step are not checked more often where history must be young', (t) => {
  const { clock, log, orders, schedule } = aSchedule({ historyAgeMs: 50 });
  log.published = 1001;
  schedule.committed(2);
  t.is(orders.length, 1);
  log.compacted = 1;
  schedule.stepped({ done: true, settled: false, tombstonesFrom: 0 }, 1);

  clock.advance(999);
  t.is(orders.length, 1);
  clock.advance(1);
  t.is(orders.length, 2);
});

test('a closed schedule starts no more steps', (t) => {
  const { clock, log, orders, schedule, stepped } = aSchedule();
  log.published = 2000;
  schedule.committed(2);

  schedule.close();
  stepped(1, 5);
  schedule.failed();
  clock.advance(10_000);

  t.false(schedule.isFirst);
  t.is(orders.length, 1);
  t.is(clock.pending, 0);
});
