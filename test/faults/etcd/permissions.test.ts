/**
 * Servers on an etcd with authentication: which permissions suffice (see docs/etcd.md), and what
 * happens without them.
 */
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
/** The user in the client certificate that the test's authority issues for etcd. */
const user = 'strata';

type Range = readonly [key: string, end: string];

const whole: readonly Range[] = [
  ['/cache.', '/cache0'],
  ['compact_rev_key', ''],
];

type Administration = Readonly<{
  call: (name: string, ...texts: readonly string[]) => Promise<void>;
  grant: (role: string, range: Range) => Promise<void>;
  close: () => void;
}>;

/** What `etcdctl user`, `role` and `auth` do. */
function administrationOf(etcd: EtcdMembers): Administration {
  const connections = new Members(etcd.endpoints, () => etcd.tls);
  const { client } = connections.current;
  const ask = (name: string, request: BinaryWriter): Promise<void> =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest(
        `/etcdserverpb.Auth/${name}`,
        (value: BinaryWriter) => Buffer.from(value.finish()),
        (value) => value,
        request,
        (error) => (error === null ? resolve() : reject(error)),
      ),
    );
  const written = (values: readonly string[]): BinaryWriter =>
    values.reduce((writer, value, i) => writer.tag(i + 1, WireType.LengthDelimited).string(value), new BinaryWriter());
  return {
    call: (name, ...texts) => ask(name, written(texts)),
    grant: (role, [key, end]) => {
      const request = written([role]);
      const permission = request.tag(2, WireType.LengthDelimited).fork();
      permission.tag(1, WireType.Varint).int32(readWrite).tag(2, WireType.LengthDelimited).string(key);
      if (end !== '') permission.tag(3, WireType.LengthDelimited).string(end);
      permission.join();
      return ask('RoleGrantPermission', request);
    },
    close: () => connections.close(),
  };
}

/**
 * Turns authentication on: the certificate's user has only these ranges and these further roles.
 */
async function restrict(etcd: EtcdMembers, ranges: readonly Range[], ...roles: readonly string[]): Promise<void> {
  const { call, grant, close } = administrationOf(etcd);
  for (const [name, role] of [
    ['root', 'root'],
    [user, 'cache'],
  ] as const) {
    await call('UserAdd', name, 'secret');
    await call('RoleAdd', role);
    await call('UserGrantRole', name, role);
  }
  for (const range of ranges) await grant('cache', range);
  for (const role of roles) await call('UserGrantRole', user, role);
  await call('AuthEnable');
  close();
}

function anExport(name: string): unknown {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {} };
}

test('a user with read and write permission below the prefix and on the compaction key suffices for servers', async (t) => {
  const etcd = await members(t, { isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  await restrict(etcd, whole);
  // Two servers, because the second one looks for the first.
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

test('a server that has lost its permissions is not ready, and one that starts without them says why', async (t) => {
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

test('no request fails because somebody changes the permissions of others', async (t) => {
  const etcd = await members(t, { isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  // The user has the role root, because it also changes roles.
  await restrict(etcd, whole, 'root');
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const client = servers.servers[0]!.client();
  const { call, grant, close } = administrationOf(etcd);
  t.teardown(close);
  await call('RoleAdd', 'other');
  const statuses = new Map<number, number>();
  let isOver = false;
  const changing = (async () => {
    for (let i = 0; !isOver; i += 1) await grant('other', [`/other${i % 7}`, '']).catch(() => {});
  })();
  await Promise.all(
    Array.from({ length: 8 }, async (_each, writer) => {
      for (let i = 0; i < 40; i += 1) {
        const [written, read] = [
          await client.raw('POST', path, { body: anExport(`w${writer}-${i}`) }),
          await client.raw('GET', `${path}/w${writer}-${i}`),
        ];
        for (const { status } of [written, read]) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }),
  );
  isOver = true;
  await changing;
  t.deepEqual([...statuses].toSorted(), [
    [200, 320],
    [201, 320],
  ]);
});
