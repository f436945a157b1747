import { test } from '../../support/test.js';
import { formatShardList, formatStatusTable } from '../../../src/commands/status-table.js';
import { aStatusReport } from '../../support/status-report.js';

const piped = { isTerminal: false };

test('the table has a row for each shard and type, and for a shard without any', (t) => {
  t.is(
    formatStatusTable(aStatusReport(), piped),
    `cache c-1, strata 0.1.0, ready, resourceVersion 1234567000000000042

SHARD     VIA          TYPE                                 CONNECTION                     SYNCED                      OBJECTS   BYTES      CHANGED     LAG
amber     local        apiexports.apis.kcp.io               connected 3m12s                yes                         12        29.5 KiB   900ms ago   3ms
amber     local        instances.machines.svm.io:abcdef01   connected 3m12s                no                          12        29.5 KiB   900ms ago   1m4s
amber     local        namespaces                           connected 3m12s, source away   yes                         0         0 B        never       3ms
birch     local        apiexports.apis.kcp.io               away 2h                        yes, earlier                12        29.5 KiB   3d ago      –
cedar     local        apiexports.apis.kcp.io               plain HTTP                     yes, assumed                12        5.0 MiB    900ms ago   –
dogwood   –            –                                    removed                        –                           0         0 B        –           –
elder     child/west   apiexports.apis.kcp.io               connected 5s                   yes                         12        29.5 KiB   900ms ago   3ms
elder     child/west   apiresourceschemas.apis.kcp.io       connected 5s                   yes, earlier, not current   12        29.5 KiB   900ms ago   3ms
`,
  );
});

test('the list has one row for each shard', (t) => {
  t.is(
    formatShardList(aStatusReport().shards),
    `SHARD     VIA          CONNECTION        SYNCED TYPES   OBJECTS   BYTES
amber     local        connected 3m12s   2 of 3         24        59.0 KiB
birch     local        away 2h           1 of 1         12        29.5 KiB
cedar     local        plain HTTP        1 of 1         12        5.0 MiB
dogwood   –            removed           0 of 0         0         0 B
elder     child/west   connected 5s      2 of 2         24        59.0 KiB
`,
  );
});

test('the table and the list of a cache without shards say so', (t) => {
  const report = { ...aStatusReport([]), cache: { ...aStatusReport().cache, ready: false } };

  t.is(formatStatusTable(report, piped), 'cache c-1, strata 0.1.0, not ready, resourceVersion 1234567000000000042\n\nno shards yet\n');
  t.is(formatShardList(report.shards), 'no shards yet\n');
});

test('the table says that a slice lost objects on the way, and that a cache misses a neighbour', (t) => {
  const { shards, ...report } = aStatusReport();
  const [amber] = shards;
  if (amber === undefined || report.tree === undefined) throw new Error('the report has both');
  const lacking = amber.slices.slice(0, 1).map((slice) => ({ ...slice, whole: false }));

  const text = formatStatusTable({ ...report, tree: { ...report.tree, complete: false }, shards: [{ ...amber, slices: lacking }] }, piped);

  t.regex(text, /^cache c-1, .*, not complete$/m);
  t.regex(text, / yes, not whole +12 /);
});
