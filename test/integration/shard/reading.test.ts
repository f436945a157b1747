import { test } from '../../support/test.js';
import type { KubeObject } from '../../support/kube-client.js';
import { until } from '../../support/test-server.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { anAgent, sliceOf, type AgentRig } from './an-agent.js';

const exports = 'apiexports.apis.kcp.io';
const slice = sliceOf(exports);

function named(name: string, spec = ''): KubeObject {
  return { spec, metadata: { name } };
}

function received(rig: AgentRig): readonly string[] {
  return rig.slices.received.get(slice) ?? [];
}

function count(words: readonly string[], word: string): number {
  return words.filter((each) => each === word).length;
}

/** Resolves once the test's sink holds what the shard holds. */
async function untilSame(rig: AgentRig): Promise<void> {
  await until(() => {
    const source = rig.shard.store.all(exports).map(({ metadata }) => metadata.resourceVersion);
    const held = Object.values(rig.slices.objects(slice)).map(({ sourceVersion }) => sourceVersion);
    return rig.slices.synced.has(slice) && JSON.stringify(source.toSorted()) === JSON.stringify(held.toSorted());
  });
}

test('a watch that breaks resumes at its position, without another sync', async (t) => {
  const rig = await anAgent(t, { prepare: ({ store }) => store.put(exports, 'root', named('a')) });
  await rig.synced();

  for (let i = 0; i < 5; i++) {
    rig.shard.cut();
    rig.shard.store.put(exports, 'root', named(`b${i}`));
    if (i % 2 === 1) rig.shard.store.delete(exports, 'root', `b${i - 1}`);
    await untilSame(rig);
  }

  t.is(count(received(rig), 'begin'), 1);
  t.is(count(received(rig), 'put b0'), 1);
});

test('an object whose bytes break off in the middle arrives whole, and once', async (t) => {
  const rig = await anAgent(t);
  await rig.synced();

  rig.shard.cutNextAfter(150);
  rig.shard.store.put(exports, 'root', named('a', 'x'.repeat(500)));

  await untilSame(rig);
  t.deepEqual(received(rig), ['begin', 'end', 'put a']);
});

test('bookmarks advance the position, so compacting changes of other types loses nothing', async (t) => {
  const rig = await anAgent(t);
  await rig.synced();
  rig.shard.store.put('apiconversions.apis.kcp.io', 'root', named('other'));

  rig.shard.bookmark();
  rig.shard.store.compact();
  await until(() => rig.slices.names(sliceOf('apiconversions.apis.kcp.io')).length === 1);
  rig.shard.bookmark();
  rig.shard.cut();
  rig.shard.store.put(exports, 'root', named('a'));

  await untilSame(rig);
  t.deepEqual(received(rig), ['begin', 'end', 'put a']);
});

test('compacted history leads to a new sync, which does not name objects deleted in the meantime', async (t) => {
  const rig = await anAgent(t, { prepare: ({ store }) => ['a', 'b'].forEach((name) => store.put(exports, 'root', named(name))) });
  await rig.synced();

  await rig.shard.stop();
  rig.shard.store.delete(exports, 'root', 'a');
  rig.shard.store.put(exports, 'root', named('c'));
  rig.shard.store.compact();
  await rig.shard.restart();

  await untilSame(rig);
  t.deepEqual(received(rig), ['begin', 'put a', 'put b', 'end', 'begin', 'put b', 'put c', 'end']);
});

test('if history is compacted again and again, syncs happen at growing intervals', async (t) => {
  const clock = new ManualClock();
  const rig = await anAgent(t, { clock });
  await rig.synced();
  for (const type of rig.slices.slices) if (type !== slice) rig.slices.withdraw({ shard: 'amber' as never, resource: resourceOf(type) });
  const advancedMs: number[] = [];

  for (const syncs of [2, 3, 4]) {
    rig.shard.store.put('apiconversions.apis.kcp.io', 'root', named('other'));
    rig.shard.store.compact();
    rig.shard.cut();
    await until(
      () =>
        rig.events('source.read.failed').filter(({ fields }) => fields['asked'] === 'watch' && fields['next'] === 'watch-list').length >=
        syncs - 1,
    );
    let waitedMs = 0;
    await until(() => {
      if (count(received(rig), 'end') >= syncs) return true;
      clock.advance(100);
      waitedMs += 100;
      return false;
    });
    advancedMs.push(waitedMs);
  }

  t.true(
    advancedMs.every((waitedMs, index) => waitedMs >= 500 * 2 ** index),
    advancedMs.join(),
  );
});

for (const how of ['watching', 'lists'] as const) {
  test(`a sync by ${how} that breaks off begins again, and ends only when it is complete`, async (t) => {
    const rig = await anAgent(t);
    await rig.synced();
    await rig.shard.stop();
    for (let i = 0; i < 40; i++) rig.shard.store.put(exports, 'root', named(`e${i}`, 'x'.repeat(4_000)));
    rig.shard.store.compact();
    rig.shard.refusesWatchList = how === 'lists';
    for (const type of rig.slices.slices) if (type !== slice) rig.slices.withdraw({ shard: 'amber' as never, resource: resourceOf(type) });
    rig.shard.cutNextAfter(90_000);
    await rig.shard.restart();

    await untilSame(rig);

    const words = received(rig);
    t.is(count(words, 'begin'), 3);
    t.is(count(words, 'end'), 2);
    t.is(words.length - words.lastIndexOf('begin'), 42);
  });
}

test('lists are read page by page, and changes between the pages are sent after them', async (t) => {
  const rig = await anAgent(t, {
    prepare: (shard) => {
      shard.refusesWatchList = true;
      for (let i = 0; i < 1_200; i++) shard.store.put(exports, 'root', named(`e${i}`));
    },
  });

  await rig.synced();
  const pages = rig.asked('apiexports').filter((path) => path.includes('limit=500'));
  t.is(pages.length, 3);
  t.is(pages.filter((path) => path.includes('continue=')).length, 2);
  t.is(rig.slices.names(slice).length, 1_200);

  rig.shard.store.delete(exports, 'root', 'e7');
  await untilSame(rig);
  t.is(count(received(rig), 'begin'), 1);
});

test('a shard that is away is retried at growing intervals, and its source reports it as away', async (t) => {
  const clock = new ManualClock();
  const rig = await anAgent(t, { clock });
  await rig.synced();
  await until(() => rig.slices.isConnected(slice));

  await rig.shard.stop();
  await until(() => !rig.slices.isConnected(slice) && rig.events('source.read.failed').length >= 36);
  await rig.shard.restart();
  rig.shard.store.put(exports, 'root', named('a'));

  await until(() => {
    clock.advance(500);
    return rig.slices.isConnected(slice) && rig.slices.names(slice).length === 1;
  });
  t.is(count(received(rig), 'begin'), 1);
});

test('a silent shard is disconnected and asked again', async (t) => {
  const clock = new ManualClock();
  const rig = await anAgent(t, { clock });
  await rig.synced();
  const asked = rig.asked('apiexports').length;

  clock.advance(11 * 60_000);

  await until(() => rig.asked('apiexports').length > asked);
  t.is(count(received(rig), 'begin'), 1);
});

test('nothing is read while the consumer does not read', async (t) => {
  const rig = await anAgent(t);
  await rig.synced();
  await rig.slices.close();

  await until(() => rig.shard.openWatches === 0);
  t.is(rig.shard.openWatches, 0);
});

function resourceOf(name: string): { group: string; resource: string; identity: string } {
  const [, resource = '', group = ''] = /\|([^.]+)\.(.+):$/.exec(name) ?? [];
  return { group, resource, identity: '' };
}
