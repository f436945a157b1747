import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { overviewOf } from '../../../src/console/overview.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { parseShardName } from '../../../src/domain/shard.js';
import type { ShardStatus, StatusReport } from '../../../src/domain/status.js';
import { aSlice, aStatusReport } from '../../support/status-report.js';

const slice = aSlice({ objects: 2, bytes: 100, changedAgoMs: 5_000 });
const shard: ShardStatus = {
  shard: parseShardName('amber')!,
  via: 'local',
  removed: false,
  connection: { kind: 'connected', forMs: 9_000, peer: '10.0.0.7' },
  standbys: 0,
  unknownTypes: [],
  slices: [slice, { ...slice, resource: 'apiresourceschemas', objects: 5, bytes: 900, changedAgoMs: null, lagMs: 8 }],
};

test('a shard is one line: the sums of its types, the longest lag, the last change', async (t) => {
  const { shards } = await overviewOf(parts([shard]), turn);

  t.deepEqual(shards, [
    {
      shard: 'amber',
      via: 'local',
      state: 'fresh',
      forMs: 9_000,
      types: 2,
      whole: 2,
      objects: 7,
      bytes: 1_000,
      lagMs: 8,
      changedAgoMs: 5_000,
    },
  ]);
});

for (const [state, changed] of [
  ['removed', { removed: true }],
  ['away', { connection: { kind: 'away', forMs: 10 } }],
  ['away', { slices: [{ ...slice, sourceConnected: false }] }],
  ['held', { slices: [{ ...slice, held: { removes: 9, forMs: 1, releaseInMs: 2 } }] }],
  ['partial', { slices: [slice, { ...slice, whole: false }] }],
] as const)
  test(`a shard is ${state}: ${JSON.stringify(changed).slice(0, 60)}`, async (t) => {
    const { shards } = await overviewOf(parts([{ ...shard, ...changed } as ShardStatus]), turn);
    t.is(shards[0]!.state, state);
  });

test('types are one line each: first those with the most objects, then every other served type', async (t) => {
  const { types } = await overviewOf(parts([shard, { ...shard, shard: parseShardName('beryl')! }]), turn);

  t.like(types[0], { resource: 'apiresourceschemas', objects: 10, bytes: 1_800, shards: 2 });
  t.like(types[1], { resource: 'apiexports', group: 'apis.kcp.io', objects: 4, shards: 2 });
  t.is(types.length, kcpTypes.length);
});

test('20,000 types of one name cost no more than as many of different names', async (t) => {
  const many = (of: (i: number) => Partial<typeof slice>): ShardStatus => ({
    ...shard,
    slices: Array.from({ length: 20_000 }, (_, i) => ({ ...slice, ...of(i) })),
  });
  const tookMs = async (status: ShardStatus): Promise<number> => {
    const beganMs = performance.now();
    await overviewOf(parts([status]), turn);
    return performance.now() - beganMs;
  };
  const differentMs = await tookMs(many((i) => ({ resource: `r${i}` })));
  const namesakesMs = await tookMs(many((i) => ({ identity: `hash-${i}` })));

  t.true(namesakesMs < 10 * differentMs + 100, `${namesakesMs} ms, ${differentMs} ms`);
});

function parts(shards: readonly ShardStatus[]) {
  const report: StatusReport = { ...aStatusReport(), shards };
  return {
    report,
    types: kcpTypes,
    activity: { intervalMs: 1, perSecond: { requests: [], written: [], events: [], refused: [] } },
    lines: [],
  };
}

test('an overview of thousands of shards takes many turns of the event loop', async (t) => {
  let turns = 0;
  const many = Array.from({ length: 1_000 }, (): ShardStatus => shard);
  const { shards, types } = await overviewOf(parts(many), async () => void (turns += 1));

  t.is(turns, 4);
  t.is(shards.length, 1_000);
  t.like(types[0], { resource: 'apiresourceschemas', objects: 5_000, shards: 1_000 });
});
