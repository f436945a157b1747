/**
 * Anybody with a certificate may ask for a view and be refused. However many ask, and however large
 * the provider's RBAC is, the reads for these decisions must delay nobody else.
 */
import { test } from '../support/test.js';
import { Bystander, formatDelays } from '../support/bystander.js';
import { aPath, anApiExport } from '../support/objects.js';
import { RawPusher, sliceOf } from '../support/raw-pusher.js';
import { StrataProcess } from '../support/strata-process.js';
import { access, aLogicalCluster, anExport, aRole, content, longBindings, providerView, rbac } from '../support/web/a-provider.js';
import { setTimeout as sleep } from 'node:timers/promises';

const strangers = 20;
const eachAtOnce = 5;
const forMs = 5_000;
/** On top of the delay measured while nobody else asks. */
const othersP99MsMax = 150;

test('strangers who ask for a view whose provider has 400 long bindings, again and again, delay nobody', async (t) => {
  t.timeout(120_000);
  await using server = await StrataProcess.start({ flags: ['--view-callers=rbac'] });
  const pusher = await RawPusher.open(server);
  t.teardown(() => pusher.socket.close('shutdown', 'bye'));
  await pusher.syncWhole(sliceOf('apiexports'), [anExport('hash')]);
  await pusher.syncWhole(sliceOf('logicalclusters', { group: 'core.kcp.io' }), [aLogicalCluster()], 'v1alpha1');
  await pusher.syncWhole(sliceOf('clusterroles', { group: rbac }), [aRole('reads', [access, content])], 'v1');
  await pusher.syncWhole(sliceOf('clusterrolebindings', { group: rbac }), [...longBindings()], 'v1');
  await server.client().create(aPath({ shard: 'birch' }), anApiExport());
  await using bystander = await Bystander.start({ url: server.url, as: server.master, path: aPath({ shard: 'birch', name: 'one' }) });
  await sleep(1_000);
  await bystander.delays();
  await sleep(2_000);
  const quiet = await bystander.delays();

  const answers = new Map<number, number>();
  const path = `${providerView}/clusters/*/apis/machines.svm.io/v1/instances`;
  const clients = await Promise.all(
    Array.from({ length: strangers }, async (_, i) => {
      const as = server.authority.issue({ user: `stranger-${i}`, groups: [] });
      return server.client({ as, http2: true });
    }),
  );
  const untilMs = performance.now() + forMs;
  await Promise.all(
    clients.flatMap((client) =>
      Array.from({ length: eachAtOnce }, async () => {
        while (performance.now() < untilMs) {
          const { status } = await client.raw('GET', path);
          answers.set(status, (answers.get(status) ?? 0) + 1);
        }
      }),
    ),
  );
  const beside = await bystander.delays();
  t.log(`${JSON.stringify([...answers])}; another reader: ${formatDelays(beside)}; before: ${formatDelays(quiet)}`);
  t.true((answers.get(403) ?? 0) >= strangers * eachAtOnce, 'the strangers were refused');
  t.deepEqual([...answers.keys()], [403]);
  t.is(beside.failed, 0);
  t.true(beside.p99 <= othersP99MsMax + quiet.p99, `${beside.p99} ms`);
});
