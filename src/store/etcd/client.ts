/**
 * Calls to etcd over gRPC. Each goes to the endpoint that answered last; one that does not answer makes the next endpoint the one to ask.
 *
 * E1 A read is asked of each endpoint once before it fails. A write is sent once, whatever becomes of it: only who sent it knows whether it may be sent
 *    again. What etcd has not looked at (`outdated`) is sent again.
 * E2 Every call ends: with an answer, or with an EtcdError after `timeoutMs` at the latest. A watch ends when the client says so, or when it is told so.
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

/** `endpoints`: such as `https://127.0.0.1:2379`. */
export type EtcdClientOptions = Readonly<{
  endpoints: readonly string[];
  /** Read again when a call has failed (members.ts). Throws CacheError. */
  tls: () => EtcdTls | undefined;
  timeoutMs: number;
}>;

/** What a watch gets; `ended` once, at last, unless it was closed from here. */
export type WatchListener = Readonly<{ received: (response: WatchResponse) => void; ended: (error: EtcdError) => void }>;

export type EtcdWatch = Readonly<{
  /** Asks how far the watch is; a response without events says so. etcd gives none to a watch that has yet to catch up: it has to be asked again. */
  askProgress: () => void;
  /** Reads nothing more until `resume`; etcd holds it back. */
  pause: () => void;
  resume: () => void;
  close: () => void;
}>;

type Method<Request, Response> = Readonly<{
  path: string;
  encode: (request: Request) => Uint8Array;
  decode: (bytes: Uint8Array) => Response;
  /** It asks for what is so already where etcd does not know of it. */
  isDoneIfGone?: boolean;
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
  isDoneIfGone: true,
};
const watching = '/etcdserverpb.Watch/Watch';
const keeping = '/etcdserverpb.Lease/LeaseKeepAlive';

const anyKey = Buffer.of(0);
/** So often somebody may change users and roles of etcd while one call is under way. */
const outdatedMax = 20;
/** A start waits so long for a member that does not say how it is. */
const statusMsMax = 2_000;

/** Watches end where no leader is known, so that a member that is cut off does not keep silent. */
const requireLeader = new Metadata();
requireLeader.set('hasleader', 'true');

export class EtcdClient {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #members: Members;
  #isClosed = false;

  /** Throws an Error for an endpoint that is no URL. */
  constructor({ clock }: { clock: Clock }, { endpoints, tls, timeoutMs }: EtcdClientOptions) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#members = new Members(endpoints, tls);
  }

  range(request: RangeRequest): Promise<RangeResponse> {
    return this.#read(range, request);
  }

  /** Where etcd as a whole stands. `key`: one that may be read. */
  async revision(key: Uint8Array = anyKey): Promise<number> {
    return (await this.range({ key, countOnly: true })).revision;
  }

  /** `timeoutMs`: if less than that of the client. */
  txn(request: TxnRequest, timeoutMs = this.#timeoutMs): Promise<TxnResponse> {
    return this.#once(txn, request, Math.min(timeoutMs, this.#timeoutMs));
  }

  compact(revision: number): Promise<void> {
    return this.#once(compaction, revision);
  }

  status(): Promise<StatusResponse> {
    return this.#read(statusOf, null);
  }

  /** Of each member, or why it does not say. */
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

  /** Keys may go with it from now on: once its time is up, unless it is kept before. */
  async grantLease(request: LeaseRequest): Promise<void> {
    await this.#once(leaseGrant, request);
  }

  /** Gives a lease all its time again; returns how many seconds that is, or 0 where it is gone. `withinMs`: if less than the client's. */
  async keepLease(id: number, withinMs = this.#timeoutMs): Promise<number> {
    const member = this.#openMember();
    const { endpoint, client } = member;
    const timeoutMs = Math.min(withinMs, this.#timeoutMs);
    return new Promise((resolve, reject) => {
      const stream = client.makeBidiStreamRequest<number, number>(keeping, (each) => Buffer.from(encodeLeaseId(each)), decodeLease);
      let isDone = false;
      /** Whatever comes first; a stream that is cancelled ends with an error of its own. */
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

  /** Resolves where it has ended before, too. */
  endLease(id: number): Promise<void> {
    return this.#once(leaseEnd, id);
  }

  /** Where the next call goes. */
  get endpoint(): string {
    return this.#members.current.endpoint;
  }

  /** That endpoint has not answered: the next call goes elsewhere, if it would go there. */
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
      askProgress: () => {
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
        // As etcd's own client, which repeats writes, too.
        if (!(error instanceof EtcdError) || error.kind !== 'outdated' || tries >= outdatedMax) throw error;
      }
    }
  }

  /** After a failure that another endpoint may not have, the next call goes there. */
  #send<Request, Response>(
    { path, encode, decode, isDoneIfGone = false }: Method<Request, Response>,
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
          if (error === null || (isDoneIfGone && error.code === status.NOT_FOUND)) resolve(response as Response);
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
