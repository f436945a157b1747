/**
 * Another client, which writes objects into etcd, many in one transaction, and records its changes.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';
import { formatObjectKey } from '../../../src/store/etcd/object-keys.js';
import { encodeLeaseId } from '../../../src/store/etcd/rpc.js';
import { valueOf } from '../../../src/store/etcd/stored-values.js';
import { aBody, aKey, type Place } from '../../support/objects.js';
import type { Change, ObjectKey, Position } from '../../support/watch-history.js';
import type { EtcdMembers } from './etcd-members.js';
import { bytes } from './with-members.js';

export type Written = Readonly<{ place: Place; labels?: Readonly<Record<string, string>>; spec?: unknown }>;

export class OtherWriter {
  /** All changes that it has made, in order. */
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

  /** Writes all of them at one revision. */
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

  /** Deletes all objects of a logical cluster on a shard, at one revision. */
  async removeAll(place: Pick<Place, 'shard' | 'cluster'>): Promise<Position> {
    const first = formatObjectKey(this.#prefix, aKey({ ...place, name: '' }));
    const request = new BinaryWriter();
    request.tag(1, WireType.LengthDelimited).bytes(bytes(first));
    // The end of the range: '0' is the byte after '/'.
    request.tag(2, WireType.LengthDelimited).bytes(bytes(`${first.slice(0, -1)}0`));
    const revision = await this.#call('KV/DeleteRange', request.finish());
    this.#forget(revision, (key) => key.startsWith(first));
    return revision;
  }

  async grantLease(id: number): Promise<void> {
    await this.#etcd.grantLease({ id, ttlSeconds: 600 });
  }

  /**
   * Ends a lease; etcd deletes what was put with it at one revision. `isOfIt`: names those keys.
   */
  async endLease(id: number, isOfIt: (key: ObjectKey) => boolean): Promise<Position> {
    const revision = await this.#call('Lease/LeaseRevoke', encodeLeaseId(id));
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

  /**
   * Resolves with the revision of the call itself: heartbeats of servers may raise etcd's
   * meanwhile.
   */
  #call(name: string, request: Uint8Array): Promise<Position> {
    return new Promise((resolve, reject) =>
      this.#client.makeUnaryRequest(
        `/etcdserverpb.${name}`,
        (value: Uint8Array) => Buffer.from(value),
        revisionIn,
        request,
        (error, revision) => (error === null && revision !== undefined ? resolve(revision) : reject(error ?? new Error('no answer'))),
      ),
    );
  }
}

/** The revision in the header with which every answer of etcd begins. */
function revisionIn(answer: Buffer): Position {
  const header = new BinaryReader(answer);
  header.tag();
  const end = header.uint32() + header.pos;
  while (header.pos < end) {
    const [field, type] = header.tag();
    if (field === 3) return BigInt(header.int64());
    header.skip(type);
  }
  return 0n;
}
