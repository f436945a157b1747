/** A server whose etcd asks who it is: what it may, and what it must be allowed. docs/etcd.md names that. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { test } from '../../support/test.js';
import { Members } from '../../../src/store/etcd/members.js';
import { KubeError } from '../../support/kube-client.js';
import { until } from '../../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { members } from './with-members.js';

const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const readWrite = 2;
/** As the test's authority names the client of etcd. */
const user = 'strata';

type Range = readonly [key: string, end: string];

const whole: readonly Range[] = [
  ['/cache.', '/cache0'],
  ['compact_rev_key', ''],
];

/** As `etcdctl` does: the user of the certificate has these ranges, and nothing else; nobody else may anything. */
async function restrict(etcd: EtcdMembers, ranges: readonly Range[]): Promise<void> {
  const connections = new Members(etcd.endpoints, () => etcd.tls);
  const { client } = connections.current;
  const call = (name: string, request: BinaryWriter): Promise<unknown> =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest(
        `/etcdserverpb.Auth/${name}`,
        (value: BinaryWriter) => Buffer.from(value.finish()),
        (value) => value,
        request,
        (error, answer) => (error === null ? resolve(answer) : reject(error)),
      ),
    );
  const texts = (...values: readonly string[]): BinaryWriter =>
    values.reduce((writer, value, i) => writer.tag(i + 1, WireType.LengthDelimited).string(value), new BinaryWriter());
  for (const [name, role] of [
    ['root', 'root'],
    [user, 'cache'],
  ] as const) {
    await call('UserAdd', texts(name, 'secret'));
    await call('RoleAdd', texts(role));
    await call('UserGrantRole', texts(name, role));
  }
  for (const [key, end] of ranges) {
    const request = texts('cache');
    const permission = request.tag(2, WireType.LengthDelimited).fork();
    permission.tag(1, WireType.Varint).int32(readWrite).tag(2, WireType.LengthDelimited).string(key);
    if (end !== '') permission.tag(3, WireType.LengthDelimited).string(end);
    permission.join();
    await call('RoleGrantPermission', request);
  }
  await call('AuthEnable', new BinaryWriter());
  connections.close();
}

function anExport(name: string): unknown {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {} };
}

test('a user who may read and write what is below the prefix, and the key of compaction, may all that servers need', async (t) => {
  const etcd = await members(t, { isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  await restrict(etcd, whole);
  // A second one looks for the first.
  await using servers = await BalancedServers.start(etcd, { flags: ['--etcd-history-age=10s'] });
  for (const [i, server] of servers.servers.entries()) {
    const client = server.client();
    await client.create(path, anExport(`n${i}`));
    t.is((await client.list(path)).items.length, i + 1);
    t.is((await client.raw('GET', `${path}/n0`)).status, 200);
    t.is((await client.raw('GET', '/readyz')).status, 200);
  }
  await servers.servers[1]!.client().delete(`${path}/n0`);
  const log = async (): Promise<string> => (await Promise.all(servers.servers.map((server) => server.log()))).join('');
  // Recent versions of etcd let nobody but root compact.
  await until(async () => /etcd\.(?:not-)?compacted/.test(await log()), 60_000);
  const refused = (await log()).split('\n').filter((line) => line.includes('permission denied') && !line.includes('etcd.not-compacted'));
  t.deepEqual(refused, []);
});

test('a server that may nothing any more is not ready, and one that starts so says why', async (t) => {
  const etcd = await members(t, { isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const server = servers.servers[0]!;
  const client = server.client();
  await client.create(path, anExport('one'));
  await restrict(etcd, []);
  await until(async () => (await client.raw('GET', '/readyz')).status === 500, 20_000);
  const error = await t.throwsAsync(client.list(path), { instanceOf: KubeError });
  t.is(error?.status, 503);
  await t.throwsAsync(servers.add(), { message: /permission denied/ });
});
