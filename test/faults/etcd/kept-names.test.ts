/**
 * A client sets a kept annotation at one server of an etcd. A pusher changes the object at another
 * server, which learns of the annotation later. Finds an annotation that the push removes.
 */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { members } from './with-members.js';

const exports = aSlice();
const one = aPath({ name: 'one' });
const behindMs = 50;
const rounds = 10;

test('a kept annotation that is set at one server survives a push to another server that does not know of it yet', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const proxy = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => proxy.close());
  const flags = ['--etcd-prefix=/cache', '--kept-annotations=apiexports.apis.kcp.io=x.io/round'];
  await using near = await StrataProcess.start({ flags: [...flags, `--etcd-servers=${etcd.endpoints[0]}`] });
  await using far = await StrataProcess.start({
    authority: near.authority,
    flags: [...flags, `--etcd-servers=http://127.0.0.1:${proxy.port}`],
  });
  const client = near.client();
  t.teardown(() => client.close());
  const pusher = await RawPusher.open(far);
  await pusher.sync(exports, [pushedExport('one')]);
  await until(async () => (await client.raw('GET', one)).status === 200);
  proxy.delay(behindMs);

  for (let round = 1; round <= rounds; round += 1) {
    const patched = client.mergePatch(one, { metadata: { annotations: { 'x.io/round': `${round}` } } });
    const pushed = pusher.acknowledged(pusher.put(exports, [pushedExport('one', { spec: { round } })]));
    await Promise.all([patched, pushed]);
    const { metadata, spec } = await client.get(one);
    t.deepEqual([metadata.annotations?.['x.io/round'], spec], [`${round}`, { round }]);
  }
  const report = JSON.parse((await client.raw('GET', '/services/cache/status')).text) as { kept: readonly unknown[] };
  t.is(report.kept.length, 1);
});
