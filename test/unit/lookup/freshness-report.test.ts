import { test } from '../../support/test.js';
import type { ShardFreshness } from '../../../src/domain/type-freshness.js';
import { freshnessOn, parseFreshnessReport, typeFreshness } from '../../../src/lookup/freshness-report.js';
import { shardName } from '../../support/objects.js';

function aShard(shard: string, more: Partial<ShardFreshness> = {}): ShardFreshness {
  const connection = { kind: 'connected', forMs: 1, peer: 'x' } as const;
  const fresh = { slices: 1, sourceConnected: true, whole: true, changedAgoMs: 900, lagMs: 3 } as const;
  return { shard: shardName(shard), connection, ...fresh, ...more };
}

function aReport(shards: readonly unknown[], more: Readonly<Record<string, unknown>> = {}) {
  return parseFreshnessReport(JSON.stringify({ cache: {}, tree: {}, whole: true, shards, shardsLeftOut: 0, ...more }));
}

test('each shard keeps its own freshness, with the age of the report', (t) => {
  const away = { connection: { kind: 'away', forMs: 1 }, sourceConnected: null, whole: false, lagMs: null } as const;
  const report = aReport([aShard('amber'), aShard('birch', away), aShard('cedar', { connection: { kind: 'plain' } })], {
    whole: false,
    shardsLeftOut: 7,
  });

  t.deepEqual(typeFreshness(report, 40), {
    whole: false,
    shardsLeftOut: 7,
    shards: [
      { shard: 'amber', connected: true, sourceConnected: true, whole: true, changedAgoMs: 900, lagMs: 3, reportedAgoMs: 40 },
      { shard: 'birch', connected: false, sourceConnected: null, whole: false, changedAgoMs: 900, lagMs: null, reportedAgoMs: 40 },
      { shard: 'cedar', connected: null, sourceConnected: true, whole: true, changedAgoMs: 900, lagMs: 3, reportedAgoMs: 40 },
    ],
  });
});

test('the freshness of a shard is unknown if the shard is not listed, or its report lacks the type', (t) => {
  const report = aReport([aShard('amber'), aShard('birch', { slices: 0 })]);

  t.like(freshnessOn(report, 'amber', 0), { shard: 'amber', whole: true });
  t.is(freshnessOn(report, 'birch', 0), undefined);
  t.is(freshnessOn(report, 'cedar', 0), undefined);
});

test('an unknown word of a newer cache counts as unknown; a body that is no freshness report is a fault', (t) => {
  const odd = { ...aShard('amber'), lagMs: { some: 'thing' }, sourceConnected: 'perhaps', changedAgoMs: undefined, more: 1 };
  const report = aReport([{ ...odd, connection: { kind: 'through-a-parent' } }], { whole: 'nearly' });

  t.deepEqual(typeFreshness(report, 0), {
    whole: false,
    shardsLeftOut: 0,
    shards: [{ shard: 'amber', connected: null, sourceConnected: null, whole: true, changedAgoMs: null, lagMs: null, reportedAgoMs: 0 }],
  });
  for (const text of ['', '[]', '{}', '{"whole":true}', '{"shards":[{}]}', '{"shards":[{"shard":1,"connection":{}}]}'])
    t.throws(() => parseFreshnessReport(text), { message: /not the freshness report of a Strata cache/ }, text);
});
