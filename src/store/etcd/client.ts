/**
 * Calls to etcd over gRPC. Every call goes to the current endpoint; if that does not answer, the
 * next one becomes current.
 *
 * E1 A read fails only after every endpoint failed once. A write is sent once, because only the
 *    caller knows whether it may be repeated. After an `outdated` error, the client repeats reads
 *    and writes, because etcd has done nothing.
 * E2 Every call ends with an answer or an EtcdError, after `timeoutMs` at the latest. A watch ends
 *    when etcd ends it, when its connection fails, or when its caller closes it.
 */
import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import type { Clock } from '../../domain/ports.js';
import { EtcdError, etcdErrorOf } from './etcd-error.js';
import { Members, type EtcdTls, type Member } from './members.js';
import {
  decodeLease,
  decodeRange,
  decodeStatus,
  decodeTxn,
  decodeWatch,
  encodeCompaction,
  encodeLeaseGrant,
  encodeLeaseId,
  encodeRange,
  encodeTxn,
  encodeWatch,
  type LeaseRequest,
  type RangeRequest,
  type RangeResponse,
  type StatusResponse,
  type TxnRequest,
  type TxnResponse,
  type WatchCreate,
  type WatchRequest,
  type WatchResponse,
} from './rpc.js';

/** `endpoints`: URLs such as `https://127.0.0.1:2379`. */
export type EtcdClientOptions = Readonly<{
  endpoints: readonly string[];
  /** Reads the certificates; called again after a failed call (members.ts). Throws CacheError. */
  tls: () => EtcdTls | undefined;
  timeoutMs: number;
}>;

/** The client calls `ended` once, after all responses, unless the caller closed the watch. */
export type WatchListener = Readonly<{ received: (response: WatchResponse) => void; ended: (error: EtcdError) => void }>;

export type EtcdWatch = Readonly<{
  /**
   * Asks etcd how far the watch is; the answer is a response without events. While the watch is
   * catching up, etcd does not answer, so the caller must repeat the call.
   */
  requestProgress: () => void;
  /** Stops reading until `resume`; flow control makes etcd wait. */
  pause: () => void;
  resume: () => void;
  close: () => void;
}>;

type Method<Request, Response> = Readonly<{
  path: string;
  encode: (request: Request) => Uint8Array;
  decode: (bytes: Uint8Array) => Response;
  /** NOT_FOUND counts as success, because the call removes something. */
  acceptsNotFound?: boolean;
}>;

const range: Method<RangeRequest, RangeResponse> = { path: '/etcdserverpb.KV/Range', encode: encodeRange, decode: decodeRange };
const txn: Method<TxnRequest, TxnResponse> = { path: '/etcdserverpb.KV/Txn', encode: encodeTxn, decode: decodeTxn };
const compaction: Method<number, void> = { path: '/etcdserverpb.KV/Compact', encode: encodeCompaction, decode: () => {} };
const statusOf: Method<null, StatusResponse> = {
  path: '/etcdserverpb.Maintenance/Status',
  encode: () => new Uint8Array(),
  decode: decodeStatus,
};
const leaseGrant: Method<LeaseRequest, number> = { path: '/etcdserverpb.Lease/LeaseGrant', encode: encodeLeaseGrant, decode: decodeLease };
const leaseEnd: Method<number, void> = {
  path: '/etcdserverpb.Lease/LeaseRevoke',
  encode: encodeLeaseId,
  decode: () => {},
  acceptsNotFound: true,
};
const watching = '/etcdserverpb.Watch/Watch';
const keeping = '/etcdserverpb.Lease/LeaseKeepAlive';

const anyKey = Buffer.of(0);
/** How often one call is repeated after `outdated`. */
const outdatedMax = 20;
/** A start waits this long for the status of a member. */
const statusMsMax = 2_000;

/**
 * Makes a member without a leader end its watches. Otherwise a member that is cut off stays silent.
 */
const requireLeader = new Metadata();
requireLeader.set('hasleader', 'true');

export class EtcdClient {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #members: Members;
  #isClosed = false;

  /** Throws an Error if an endpoint is not a URL. */
  constructor({ clock }: { clock: Clock }, { endpoints, tls, timeoutMs }: EtcdClientOptions) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#members = new Members(endpoints, tls);
  }

  range(request: RangeRequest): Promise<RangeResponse> {
    return this.#read(range, request);
  }

  /**
   * etcd's newest revision, by a linearizable read. `key`: any key that this user of etcd may read.
   */
  async revision(key: Uint8Array = anyKey): Promise<number> {
    return (await this.range({ key, countOnly: true })).revision;
  }

  /** `timeoutMs`: used only if shorter than the client's own timeout. */
  txn(request: TxnRequest, timeoutMs = this.#timeoutMs): Promise<TxnResponse> {
    return this.#once(txn, request, Math.min(timeoutMs, this.#timeoutMs));
  }

  compact(revision: number): Promise<void> {
    return this.#once(compaction, revision);
  }

  status(): Promise<StatusResponse> {
    return this.#read(statusOf, null);
  }

  async statuses(): Promise<readonly Readonly<{ endpoint: string; status: StatusResponse | EtcdError }>[]> {
    const asked = this.#members.all.map(async (member) => {
      try {
        return { endpoint: member.endpoint, status: await this.#once(statusOf, null, Math.min(statusMsMax, this.#timeoutMs), member) };
      } catch (error) {
        if (error instanceof EtcdError) return { endpoint: member.endpoint, status: error };
        throw error;
      }
    });
    return Promise.all(asked);
  }

  /** When the lease expires, etcd deletes the keys that are attached to it. */
  async grantLease(request: LeaseRequest): Promise<void> {
    await this.#once(leaseGrant, request);
  }

  /**
   * Returns the lease's new time in seconds; 0 or less if it is gone. `withinMs`: used only if
   * shorter than the client's own timeout.
   */
  async keepLease(id: number, withinMs = this.#timeoutMs): Promise<number> {
    const member = this.#openMember();
    const { endpoint, client } = member;
    const timeoutMs = Math.min(withinMs, this.#timeoutMs);
    return new Promise((resolve, reject) => {
      const stream = client.makeBidiStreamRequest<number, number>(keeping, (each) => Buffer.from(encodeLeaseId(each)), decodeLease);
      let isDone = false;
      /** Only the first result counts, because the stream emits an error when it is cancelled. */
      const done = (finish: () => void): void => {
        if (isDone) return;
        isDone = true;
        overdue();
        stream.cancel();
        finish();
      };
      const fail = (error: EtcdError): void => {
        this.moveOn(endpoint);
        reject(error);
      };
      const overdue = this.#clock.after(timeoutMs, () => {
        this.#members.reconnect(member);
        done(() => fail(new EtcdError('unknown', `etcd at ${endpoint} did not answer within ${timeoutMs / 1000} s`)));
      });
      stream.on('data', (seconds: number) => done(() => resolve(seconds)));
      stream.on('error', (error: ServiceError) => done(() => fail(etcdErrorOf(endpoint, error))));
      stream.write(id);
    });
  }

  /** Resolves also if the lease has already ended. */
  endLease(id: number): Promise<void> {
    return this.#once(leaseEnd, id);
  }

  /** The endpoint of the next call. */
  get endpoint(): string {
    return this.#members.current.endpoint;
  }

  /**
   * This endpoint did not answer. If it is the current one, the next call goes to the next
   * endpoint.
   */
  moveOn(endpoint: string): void {
    this.#members.moveOn(endpoint);
  }

  watch(create: WatchCreate, { received, ended }: WatchListener): EtcdWatch {
    const { endpoint, client } = this.#members.current;
    const stream = client.makeBidiStreamRequest<WatchRequest, WatchResponse>(
      watching,
      (request) => Buffer.from(encodeWatch(request)),
      decodeWatch,
      requireLeader,
    );
    let isClosed = false;
    const end = (error: EtcdError): void => {
      if (isClosed) return;
      isClosed = true;
      stream.cancel();
      ended(error);
    };
    stream.on('data', (response: WatchResponse) => {
      if (!isClosed) received(response);
    });
    stream.on('error', (error: ServiceError) => end(etcdErrorOf(endpoint, error)));
    stream.on('end', () => end(new EtcdError('unknown', `etcd at ${endpoint} has ended the watch`)));
    stream.write({ kind: 'create', create });
    return {
      requestProgress: () => {
        if (!isClosed) stream.write({ kind: 'progress' });
      },
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      close: () => {
        isClosed = true;
        stream.cancel();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#members.close();
  }

  async #read<Request, Response>(method: Method<Request, Response>, request: Request): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(method, request);
      } catch (error) {
        if (!(error instanceof EtcdError) || error.kind !== 'unknown' || tries >= this.#members.all.length) throw error;
      }
    }
  }

  async #once<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    timeoutMs = this.#timeoutMs,
    member = this.#openMember(),
  ): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#send(method, request, timeoutMs, member);
      } catch (error) {
        // etcd's own client repeats such calls too, writes included.
        if (!(error instanceof EtcdError) || error.kind !== 'outdated' || tries >= outdatedMax) throw error;
      }
    }
  }

  /** After a failure of the kind `unknown`, the next call goes to the next endpoint. */
  #send<Request, Response>(
    { path, encode, decode, acceptsNotFound = false }: Method<Request, Response>,
    request: Request,
    timeoutMs: number,
    member: Member,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      const fail = (error: EtcdError): void => {
        if (error.kind === 'unknown') this.moveOn(member.endpoint);
        reject(error);
      };
      const overdue = this.#clock.after(timeoutMs, () => {
        call.cancel();
        this.#members.reconnect(member);
        fail(new EtcdError('unknown', `etcd at ${member.endpoint} did not answer within ${timeoutMs / 1000} s`));
      });
      const call = member.client.makeUnaryRequest(
        path,
        (value: Request) => Buffer.from(encode(value)),
        decode,
        request,
        (error: ServiceError | null, response?: Response) => {
          overdue();
          if (error === null || (acceptsNotFound && error.code === status.NOT_FOUND)) resolve(response as Response);
          else fail(etcdErrorOf(member.endpoint, error));
        },
      );
    });
  }

  #openMember(): Member {
    if (this.#isClosed) throw new EtcdError('refused', 'the connections to etcd are closed');
    return this.#members.current;
  }
}
