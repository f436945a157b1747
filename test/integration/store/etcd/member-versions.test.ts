/** Which etcd versions a start accepts. The members are gRPC servers that answer only `Status`. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { ExecutionContext } from 'ava';
import { test } from '../../../support/test.js';
import { systemClock } from '../../../../src/clock.js';
import { CacheError } from '../../../../src/domain/errors.js';
import { EtcdClient } from '../../../../src/store/etcd/client.js';
import { assertVersions } from '../../../../src/store/etcd/member-versions.js';
import { silent } from '../../../support/test-store.js';

const statusPath = '/etcdserverpb.Maintenance/Status';

/** Starts a member; returns its endpoint. `version` undefined: its answer has no version. */
async function member(t: ExecutionContext, version: string | undefined): Promise<string> {
  const server = new Server();
  const answer = new BinaryWriter();
  if (version !== undefined) answer.tag(2, WireType.LengthDelimited).string(version);
  const response = Buffer.from(answer.finish());
  const asBuffer = (value: Buffer): Buffer => value;
  const method = { path: statusPath, requestStream: false, responseStream: false };
  const codec = { requestSerialize: asBuffer, requestDeserialize: asBuffer, responseSerialize: asBuffer, responseDeserialize: asBuffer };
  server.addService(
    { status: { ...method, ...codec } },
    { status: (_call: unknown, answered: (error: null, value: Buffer) => void) => answered(null, response) },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  t.teardown(() => server.forceShutdown());
  return `http://127.0.0.1:${port}`;
}

function clientOf(t: ExecutionContext, endpoints: readonly string[]): EtcdClient {
  const client = new EtcdClient({ clock: systemClock }, { endpoints, tls: () => undefined, timeoutMs: 5_000 });
  t.teardown(() => client.close());
  return client;
}

for (const version of ['3.5.0', '3.5.21', '3.6.16', '3.6.0-rc.1', '3.10.1', '3.5.9+dfsg', '4.0.0'])
  test(`a member of version ${version} is accepted`, async (t) => {
    await t.notThrowsAsync(assertVersions(clientOf(t, [await member(t, version)]), silent));
  });

for (const version of [
  '3.4.23',
  '3.4.36',
  '3.3.27',
  '2.3.8',
  '3.05x',
  '3',
  '-3.6.0',
  'v3.6.0',
  ' 3.6.0',
  '3.6.0'.repeat(1_000),
  '',
  undefined,
])
  test(`a member with the version ${String(version).slice(0, 20)} is refused, alone or among recent ones, with the needed version`, async (t) => {
    const old = await member(t, version);
    const recent = [await member(t, '3.6.16'), await member(t, '3.5.0')];
    for (const endpoints of [[old], [...recent, old], [old, ...recent]]) {
      const error = await t.throwsAsync(assertVersions(clientOf(t, endpoints), silent), { instanceOf: CacheError });
      t.true(error?.message.includes(old));
      t.regex(error?.message ?? '', /every member needs 3\.5 or later/);
      t.true((error?.message.length ?? 0) < 200);
    }
  });

test('a member that does not answer is skipped, and the log names it', async (t) => {
  const recent = await member(t, '3.6.16');
  const away = 'http://127.0.0.1:1';
  const logged: unknown[] = [];
  await assertVersions(clientOf(t, [away, recent]), {
    ...silent,
    warn: (event, fields) => void logged.push([event, fields?.['endpoint']]),
  });
  t.deepEqual(logged, [['etcd.version-unknown', away]]);
});
