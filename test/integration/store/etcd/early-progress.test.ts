/**
 * An etcd that reports progress before it has sent the changes up to there. etcd before 3.5.8
 * (etcd-io/etcd#15220) and kine (k3s-io/kine#731) do so under load. A follower that believes it
 * would miss the change forever.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Server, ServerCredentials, type ServerDuplexStream, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { test } from '../../../support/test.js';
import { systemClock } from '../../../../src/clock.js';
import { EtcdClient } from '../../../../src/store/etcd/client.js';
import { Follower, type FollowedBatch } from '../../../../src/store/etcd/follower.js';
import { silent } from '../../../support/test-store.js';

const header = (writer: BinaryWriter, revision: number): BinaryWriter =>
  writer.tag(1, WireType.LengthDelimited).fork().tag(3, WireType.Varint).int64(revision).join();

function progress(revision: number): Uint8Array {
  return header(new BinaryWriter(), revision).finish();
}

function created(revision: number): Uint8Array {
  return header(new BinaryWriter(), revision).tag(3, WireType.Varint).bool(true).finish();
}

/** A response with a put of `/x/a`. */
function put(revision: number): Uint8Array {
  const writer = header(new BinaryWriter(), revision).tag(11, WireType.LengthDelimited).fork();
  const kv = writer.tag(2, WireType.LengthDelimited).fork();
  kv.tag(1, WireType.LengthDelimited).bytes(Buffer.from('/x/a')).tag(3, WireType.Varint).int64(revision);
  return kv.join().join().finish();
}

type Sent = ServerDuplexStream<Uint8Array, Uint8Array>;

/** Answers every range with no keys at revision 5, and each watch with these responses. */
async function anEtcd(responses: readonly Uint8Array[]): Promise<Readonly<{ endpoint: string; close: () => void }>> {
  const server = new Server();
  const [bytes, same] = [(value: Uint8Array): Buffer => Buffer.from(value), (value: Buffer): Uint8Array => value];
  const codec = { requestSerialize: bytes, requestDeserialize: same, responseSerialize: bytes, responseDeserialize: same };
  const unary = { requestStream: false, responseStream: false, ...codec };
  server.addService(
    {
      range: { path: '/etcdserverpb.KV/Range', ...unary },
      watch: { path: '/etcdserverpb.Watch/Watch', ...codec, requestStream: true, responseStream: true },
    },
    {
      range: (_: ServerUnaryCall<Uint8Array, Uint8Array>, answer: sendUnaryData<Uint8Array>) => answer(null, progress(5)),
      watch: (stream: Sent) => stream.once('data', () => responses.forEach((each) => stream.write(each))),
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { endpoint: `http://127.0.0.1:${port}`, close: () => server.forceShutdown() };
}

test('a change below a revision that etcd reported as complete makes the follower fail, and is not delivered', async (t) => {
  const etcd = await anEtcd([created(5), progress(7), put(6)]);
  t.teardown(etcd.close);
  const client = new EtcdClient({ clock: systemClock }, { endpoints: [etcd.endpoint], tls: () => undefined, timeoutMs: 5_000 });
  t.teardown(() => client.close());
  const batches: FollowedBatch[] = [];
  const apply = (batch: FollowedBatch): void => void batches.push(batch);
  const range = { key: Buffer.from('/x/'), rangeEnd: Buffer.from('/x0') };
  const follower = await Follower.open(range, { client, clock: systemClock, log: silent, apply, isKept: async () => true }, 0);

  follower.begin();

  t.regex((await follower.failed).message, /revision 7 as sent in full, and then sent revision 6/);
  t.deepEqual(batches.flatMap(({ events }) => events), []); // prettier-ignore
});
