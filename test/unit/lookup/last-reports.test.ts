import { test } from '../../support/test.js';
import { LastReports } from '../../../src/lookup/last-reports.js';
import { LastShards } from '../../../src/lookup/last-shards.js';
import { ManualClock } from '../../support/store/manual-clock.js';

test('of a thousand questions each has its last report; of more, the one is forgotten that nobody has asked for longest', async (t) => {
  const asked: string[] = [];
  const reports = new LastReports({
    clock: new ManualClock(),
    ask: async (question) => {
      asked.push(question);
      return { whole: true, newestChange: undefined, shards: [], shardsLeftOut: 0 };
    },
  });
  const ask = (i: number) => reports.to(`question ${i}`).within(1_000);

  for (let i = 0; i < 1_000; i++) await ask(i);
  await ask(0);
  t.is(asked.length, 1_000);

  await ask(1_000);
  await ask(0);
  t.is(asked.length, 1_001);
  await ask(1);
  t.deepEqual(asked.slice(1_000), ['question 1000', 'question 1']);
});

test('the shard of a cluster is remembered for each type, and of ten thousand clusters', (t) => {
  const shards = new LastShards();
  const place = (cluster: string) => ({ group: 'apis.kcp.io', resource: 'apiexports', cluster });

  shards.learn(place('acme'), 'amber');
  shards.learn(place('acme'), 'birch');
  t.is(shards.of(place('acme')), 'birch');
  t.is(shards.of({ ...place('acme'), resource: 'apibindings' }), undefined);
  t.is(shards.of({ ...place('acme'), identity: 'abc' }), undefined);

  for (let i = 0; i < 9_999; i++) shards.learn(place(`c-${i}`), 'amber');
  t.is(shards.of(place('acme')), 'birch');
  shards.learn(place('one-more'), 'amber');
  t.is(shards.of(place('acme')), undefined);
});
