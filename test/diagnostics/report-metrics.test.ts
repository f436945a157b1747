import test from 'ava';
import { createMetrics } from '../../src/diagnostics/metrics.js';
import { showReport } from '../../src/diagnostics/report-metrics.js';
import { aCertificate, aStatusReport, aTreeStatus } from '../support/status-report.js';

test('a report shows every link, shard and slice, and drops what it no longer has', async (t) => {
  const metrics = createMetrics({ processMetrics: false });

  const certificates = [aCertificate('serving', 40), aCertificate('client-ca', 3), aCertificate('client-ca', -2)];
  showReport(metrics, { ...aStatusReport(), tree: aTreeStatus(), certificates });
  const full = await metrics.render();
  showReport(metrics, aStatusReport([]));
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
  t.notRegex(empty, /strata_(?:certificate_expires_seconds|link_connected|link_slices|shard_connected|slice_objects|slice_whole)\{/);
});
