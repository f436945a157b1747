/** Somebody else who writes objects into etcd, many with one transaction, and keeps account of what became of each. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';
import { formatObjectKey } from '../../src/store/etcd/object-keys.js';
import { valueOf } from '../../src/store/etcd/stored-values.js';
import { aBody, aKey, type Place } from '../support/objects.js';
import type { Change, ObjectKey, Position } from '../support/watch-history.js';
import type { EtcdMembers } from './etcd-members.js';
import { bytes } from './with-members.js';

export type Written = Readonly<{ place: Place; labels?: Readonly<Record<string, string>>; spec?: unknown }>;

export class OtherWriter {
  /** Everything that it has done. */
  readonly truth: Change[] = [];
  readonly #held = new Map<ObjectKey, Readonly<{ key: string; labels: Readonly<Record<string, string>> }>>();
  readonly #prefix: string;
  readonly #etcd: ReturnType<EtcdMembers['client']>;
  readonly #client: Client;

  constructor(etcd: EtcdMembers, prefix: string) {
    this.#prefix = prefix;
    this.#etcd = etcd.client(etcd.endpoints, 60_000);
    this.#client = new Client(new URL(etcd.endpoints[0]!).host, credentials.createInsecure());
  }

  get held(): ReadonlySet<ObjectKey> {
    return new Set(this.#held.keys());
  }

  /** At one revision. */
  async put(written: readonly Written[], lease?: number): Promise<Position> {
    const puts = written.map(({ place, labels = {}, spec = {} }) => {
      const key = aKey(place);
      return { key, text: formatObjectKey(this.#prefix, key), labels, body: aBody(key, { labels, spec }) };
    });
    const { revision } = await this.#etcd.txn({
      compare: [],
      success: puts.map(({ text, body }) => ({
        kind: 'put',
        key: bytes(text),
        value: valueOf(body),
        ...(lease === undefined ? {} : { lease }),
      })),
      failure: [],
    });
    for (const { key, text, labels } of puts) {
      const of = [key.shard, key.cluster, key.namespace, key.name].join('|');
      this.#held.set(of, { key: text, labels });
      this.truth.push({ kind: 'put', key: of, position: BigInt(revision), labels });
    }
    return BigInt(revision);
  }

  /** All whose keys in etcd begin so, at one revision. */
  async removeAll(place: Pick<Place, 'shard' | 'cluster'>): Promise<Position> {
    const first = formatObjectKey(this.#prefix, aKey({ ...place, name: '' }));
    const request = new BinaryWriter();
    request.tag(1, WireType.LengthDelimited).bytes(bytes(first));
    // '0' follows '/'.
    request.tag(2, WireType.LengthDelimited).bytes(bytes(`${first.slice(0, -1)}0`));
    await this.#call('DeleteRange', request.finish());
    const revision = await this.#etcd.revision();
    this.#forget(BigInt(revision), (key) => key.startsWith(first));
    return BigInt(revision);
  }

  async grantLease(id: number): Promise<void> {
    await this.#etcd.grantLease({ id, ttlSeconds: 600 });
  }

  /** What was put with it goes at one revision. */
  async endLease(id: number, isOfIt: (key: ObjectKey) => boolean): Promise<Position> {
    await this.#etcd.endLease(id);
    const revision = BigInt(await this.#etcd.revision());
    this.#forget(revision, (_, key) => isOfIt(key));
    return revision;
  }

  close(): void {
    this.#etcd.close();
    this.#client.close();
  }

  #forget(position: Position, isGone: (text: string, key: ObjectKey) => boolean): void {
    for (const [key, { key: text, labels }] of this.#held) {
      if (!isGone(text, key)) continue;
      this.#held.delete(key);
      this.truth.push({ kind: 'delete', key, position, labels });
    }
  }

  #call(name: string, request: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#client.makeUnaryRequest(
        `/etcdserverpb.KV/${name}`,
        (value: Uint8Array) => Buffer.from(value),
        () => {},
        request,
        (error) => (error === null ? resolve() : reject(error)),
      ),
    );
  }
}
