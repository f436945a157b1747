/** `strata check` on a real etcd, as an operator calls it. */
import { test } from '../../support/test.js';
import { runProgram } from '../../clients/installed.js';
import { builtMain } from '../../support/project.js';
import { BalancedServers } from './balanced-servers.js';
import { bytes, members } from './with-members.js';

const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

test('a check reads all that servers have stored in etcd, and names each key that servers skip', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const client = servers.client();
  for (let i = 0; i < 3; i += 1)
    await client.create(path, { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: `n${i}` }, spec: {} });
  const check = () =>
    runProgram(process.execPath, [builtMain(), 'check', `--etcd-servers=${etcd.endpoints.join(',')}`], { timeoutMs: 20_000 });

  const sound = await check();
  t.is(sound.code, 0, sound.stderr);
  t.regex(sound.stdout, /^http:\S+ \/cache: at resourceVersion \d+\nobjects {2}sound {2}3 examined\nrecords {2}sound {2}\d+ examined\n/);

  const writer = etcd.client();
  const put = (key: string, value: string) =>
    writer.txn({ compare: [], success: [{ kind: 'put', key: bytes(key), value: bytes(value) }], failure: [] });
  await put('/cache/apis.kcp.io/apiexports/customresources/amber/acme/bad', 'no JSON');
  await put('/cache/apis.kcp.io/apiexports', 'x');
  await put('/cache.strata/v1/shards/birch', '[]');
  await put('/cache.strata/v2/anything', 'of a later version');
  await put('/cache/apiextensions.k8s.io/customresourcedefinitions/x', 'kcp’s own');
  writer.close();

  const found = await check();
  t.is(found.code, 1);
  for (const line of [
    /apiexports\/customresources\/amber\/acme\/bad: /,
    /\/cache\/apis\.kcp\.io\/apiexports: it is not the key of an object/,
    /shards\/birch: /,
  ])
    t.regex(found.stdout, line);
  t.is(found.stdout.match(/DAMAGED/g)?.length, 3);
  t.is((await client.list(path)).items.length, 3, 'the server goes on');
});
