import test from 'ava';
import { freshnessOn, parseFreshnessReport, typeFreshness, type FreshnessReport } from '../../src/lookup/freshness-report.js';
import { aStatusReport } from '../support/status-report.js';

const exports = { group: 'apis.kcp.io', resource: 'apiexports' };

function aSlice(slice: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return { ...exports, identity: '', whole: true, changedAgoMs: 900, lagMs: 3, sourceConnected: true, ...slice };
}

function aShard(shard: string, slices: readonly unknown[] = [aSlice()], more: Readonly<Record<string, unknown>> = {}): unknown {
  return { shard, removed: false, connection: { kind: 'connected', forMs: 1, peer: 'x' }, slices, ...more };
}

function aReport(shards: readonly unknown[], { ready = true, complete = true } = {}): FreshnessReport {
  return parseFreshnessReport(JSON.stringify({ cache: { ready }, tree: { complete }, shards }));
}

test('each shard gets its own freshness for a type from a cache’s report', (t) => {
  const report = parseFreshnessReport(JSON.stringify(aStatusReport()));

  const { whole, shards } = typeFreshness(report, exports, 40);

  t.false(whole);
  t.deepEqual(shards, [
    { shard: 'amber', connected: true, sourceConnected: true, whole: true, changedAgoMs: 900, lagMs: 3, reportedAgoMs: 40 },
    { shard: 'birch', connected: false, sourceConnected: null, whole: false, changedAgoMs: 259_200_000, lagMs: null, reportedAgoMs: 40 },
    { shard: 'cedar', connected: null, sourceConnected: null, whole: true, changedAgoMs: 900, lagMs: null, reportedAgoMs: 40 },
    { shard: 'elder', connected: true, sourceConnected: true, whole: true, changedAgoMs: 900, lagMs: 3, reportedAgoMs: 40 },
  ]);
});

test('absence counts only where the cache is ready, knows every shard, and has all objects of each', (t) => {
  const whole = (report: FreshnessReport): boolean => typeFreshness(report, exports, 0).whole;

  t.true(whole(aReport([aShard('amber'), aShard('birch')])));
  t.true(whole(aReport([aShard('amber'), aShard('birch', [], { removed: true })])));
  t.false(whole(aReport([aShard('amber'), aShard('birch', [aSlice({ whole: false })])])));
  t.false(whole(aReport([aShard('amber'), aShard('birch', [aSlice({ resource: 'apiconversions' })])])));
  t.false(whole(aReport([aShard('amber')], { ready: false })));
  t.false(whole(aReport([aShard('amber')], { complete: false })));
  t.false(whole(aReport([aShard('amber', [aSlice()], { connection: { kind: 'away', forMs: 1 } })])), 'nobody pushes its objects');
  t.false(whole(aReport([aShard('amber', [aSlice()], { connection: { kind: 'plain' } })])), 'nobody reports on it');
  t.false(whole(aReport([aShard('amber', [aSlice({ sourceConnected: false })])])));
  t.false(whole(aReport([aShard('amber', [aSlice({ sourceConnected: null, lagMs: null })])])), 'its pusher does not name the type');
  t.false(whole(aReport([])));
});

test('without an identity the worst type of that name counts, with one that type alone', (t) => {
  const good = aSlice({ identity: 'good' });
  const bad = aSlice({ identity: 'bad', whole: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false });
  const report = aReport([aShard('amber', [good, bad])]);

  t.like(freshnessOn(report, 'amber', exports, 0), { whole: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false });
  t.like(freshnessOn(report, 'amber', { ...exports, identity: 'good' }, 0), {
    whole: true,
    changedAgoMs: 900,
    lagMs: 3,
    sourceConnected: true,
  });
  t.is(freshnessOn(report, 'amber', { ...exports, identity: 'none' }, 0), undefined);
  t.is(freshnessOn(report, 'birch', exports, 0), undefined);
});

test('an unknown word of a newer cache counts as unknown; a body that is no status is a fault', (t) => {
  const slice = aSlice({ lagMs: { some: 'thing' }, sourceConnected: 'perhaps', changedAgoMs: undefined });
  const report = aReport([aShard('amber', [slice], { connection: { kind: 'through-a-parent' }, more: 1 })]);

  t.deepEqual(freshnessOn(report, 'amber', exports, 0), {
    shard: 'amber',
    connected: null,
    sourceConnected: null,
    whole: true,
    changedAgoMs: null,
    lagMs: null,
    reportedAgoMs: 0,
  });
  for (const text of ['', '[]', '{}', '{"cache":{}}', '{"cache":{},"shards":[{}]}', '{"cache":{},"shards":[{"shard":1,"connection":{}}]}'])
    t.throws(() => parseFreshnessReport(text), { message: /no status of a cache/ }, text);
});
