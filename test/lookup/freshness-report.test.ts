import test from 'ava';
import { freshnessOn, parseFreshnessReport, typeFreshness, type FreshnessReport } from '../../src/lookup/freshness-report.js';
import { aStatusReport } from '../support/status-report.js';

const exports = { group: 'apis.kcp.io', resource: 'apiexports' };

function aSlice(slice: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return { ...exports, identity: '', synced: true, changedAgoMs: 900, lagMs: 3, sourceConnected: true, ...slice };
}

function aShard(shard: string, slices: readonly unknown[] = [aSlice()], more: Readonly<Record<string, unknown>> = {}): unknown {
  return { shard, removed: false, connection: { kind: 'connected', forMs: 1, peer: 'x' }, slices, ...more };
}

function aReport(shards: readonly unknown[], ready = true): FreshnessReport {
  return parseFreshnessReport(JSON.stringify({ cache: { ready }, shards }));
}

test('of what a cache reports, each shard tells what stands for the type', (t) => {
  const report = parseFreshnessReport(JSON.stringify(aStatusReport()));

  const { synced, shards } = typeFreshness(report, exports, 40);

  t.true(synced);
  t.deepEqual(shards, [
    { shard: 'amber', connected: true, sourceConnected: true, synced: true, changedAgoMs: 900, lagMs: 3, toldAgoMs: 40 },
    { shard: 'birch', connected: false, sourceConnected: null, synced: true, changedAgoMs: 259_200_000, lagMs: null, toldAgoMs: 40 },
    { shard: 'cedar', connected: null, sourceConnected: null, synced: true, changedAgoMs: 900, lagMs: null, toldAgoMs: 40 },
    { shard: 'elder', connected: true, sourceConnected: true, synced: true, changedAgoMs: 900, lagMs: 3, toldAgoMs: 40 },
  ]);
});

test('absence counts only where the cache is ready and every shard it knows has told the type as a whole', (t) => {
  const synced = (report: FreshnessReport): boolean => typeFreshness(report, exports, 0).synced;

  t.true(synced(aReport([aShard('amber'), aShard('birch')])));
  t.true(synced(aReport([aShard('amber'), aShard('birch', [], { removed: true })])));
  t.false(synced(aReport([aShard('amber'), aShard('birch', [aSlice({ synced: false })])])));
  t.false(synced(aReport([aShard('amber'), aShard('birch', [aSlice({ resource: 'apiconversions' })])])));
  t.false(synced(aReport([aShard('amber')], false)));
  t.false(synced(aReport([])));
});

test('without an identity the worst of the types of that name speaks, with one that type alone', (t) => {
  const good = aSlice({ identity: 'good' });
  const bad = aSlice({ identity: 'bad', synced: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false });
  const report = aReport([aShard('amber', [good, bad])]);

  t.like(freshnessOn(report, 'amber', exports, 0), { synced: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false });
  t.like(freshnessOn(report, 'amber', { ...exports, identity: 'good' }, 0), {
    synced: true,
    changedAgoMs: 900,
    lagMs: 3,
    sourceConnected: true,
  });
  t.is(freshnessOn(report, 'amber', { ...exports, identity: 'none' }, 0), undefined);
  t.is(freshnessOn(report, 'birch', exports, 0), undefined);
});

test('what a newer cache says in words that are not known here is told by nobody; what is no status is a fault', (t) => {
  const slice = aSlice({ lagMs: { some: 'thing' }, sourceConnected: 'perhaps', changedAgoMs: undefined });
  const report = aReport([aShard('amber', [slice], { connection: { kind: 'through-a-parent' }, more: 1 })]);

  t.deepEqual(freshnessOn(report, 'amber', exports, 0), {
    shard: 'amber',
    connected: null,
    sourceConnected: null,
    synced: true,
    changedAgoMs: null,
    lagMs: null,
    toldAgoMs: 0,
  });
  for (const text of ['', '[]', '{}', '{"cache":{}}', '{"cache":{},"shards":[{}]}', '{"cache":{},"shards":[{"shard":1,"connection":{}}]}'])
    t.throws(() => parseFreshnessReport(text), { message: /no status of a cache/ }, text);
});
