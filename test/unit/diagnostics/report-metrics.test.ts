import { test } from '../../support/test.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import { showReport } from '../../../src/diagnostics/report-metrics.js';
import { aCertificate, aStatusReport, aTreeStatus } from '../../support/status-report.js';

test('the metrics show every link, shard and slice of a report, and drop those that it no longer has', async (t) => {
  const metrics = createMetrics({ processMetrics: false });

  const certificates = [aCertificate('serving', 40), aCertificate('client-ca', 3), aCertificate('client-ca', -2)];
  showReport(metrics, { ...aStatusReport(), tree: aTreeStatus(), certificates }, { slicesMax: 1_000 });
  const full = await metrics.render();
  showReport(metrics, aStatusReport([]), { slicesMax: 1_000 });
  const empty = await metrics.render();

  for (const line of [
    'strata_link_connected{neighbour="parent"} 1',
    'strata_link_connected{neighbour="child/west"} 0',
    'strata_link_behind{neighbour="child/east"} 3',
    'strata_link_slices{neighbour="parent",state="in-step"} 12',
    'strata_link_slices{neighbour="parent",state="syncing"} 2',
    'strata_shard_connected{shard="elder"} 1',
    `strata_certificate_expires_seconds{use="serving"} ${Date.UTC(2027, 0, 1) / 1000}`,
    `strata_certificate_expires_seconds{use="client-ca"} ${Date.UTC(2026, 10, 20) / 1000}`,
    'strata_slice_whole{shard="amber",type="apiexports.apis.kcp.io"} 1',
    'strata_slice_whole{shard="birch",type="apiexports.apis.kcp.io"} 0',
    'strata_tree_complete 1',
    'strata_slice_objects{shard="birch",type="apiexports.apis.kcp.io"} 12',
  ])
    t.true(full.includes(`${line}\n`), line);
  t.false(full.includes('strata_link_behind{neighbour="child/west"}'));
  t.deepEqual(
    [...full.matchAll(/strata_shard_connected\{shard="(\w+)"\}/g)].map(([, shard]) => shard),
    aStatusReport().shards.flatMap(({ shard, removed, connection }) => (removed || connection.kind === 'plain' ? [] : [shard])),
  );
  t.notRegex(empty, /strata_(?:certificate_expires_seconds|link_connected|link_slices|shard_connected|slice_objects|slice_whole)\{/);
});

test('with too many slices each shard has its series once, and the sums stay complete', async (t) => {
  const metrics = createMetrics({ processMetrics: false });
  const report = aStatusReport();
  const slices = report.shards.flatMap((shard) => shard.slices);
  showReport(metrics, report, { slicesMax: slices.length });
  t.true((await metrics.render()).includes('strata_slice_whole{shard="amber",type="apiexports.apis.kcp.io"} 1\n'));

  showReport(metrics, report, { slicesMax: slices.length - 1 });
  const text = await metrics.render();
  const series = [...text.matchAll(/^strata_slice_objects\{shard="([^"]+)",type="([^"]+)"\} (\d+)$/gm)];
  t.deepEqual(
    series.map(([, shard, type]) => `${shard} ${type}`),
    report.shards.filter((shard) => shard.slices.length > 0).map(({ shard }) => `${shard} *`),
  );
  t.is(
    series.reduce((sum, [, , , value]) => sum + Number(value), 0),
    slices.reduce((sum, { objects }) => sum + objects, 0),
  );
  t.true(text.includes('strata_slice_whole{shard="birch",type="*"} 0\n'));
});
