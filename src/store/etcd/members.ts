/**
 * Holds one connection to each member of an etcd, and decides which member gets the next call. A
 * connection opens with its first call. Calls under way on a replaced connection continue.
 */
import { isDeepStrictEqual } from 'node:util';
import { Client, credentials, type ChannelCredentials } from '@grpc/grpc-js';
import { CacheError } from '../../domain/errors.js';

/**
 * PEM texts. Without an EtcdTls, connections trust Node's CAs and present no certificate. An `http`
 * endpoint never uses TLS.
 */
export type EtcdTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

export type Member = Readonly<{ endpoint: string; client: Client }>;

/**
 * Without limits of size: a page of large objects exceeds gRPC's default, and etcd itself limits
 * what it receives.
 */
const channelOptions = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.enable_http_proxy': 0,
  // After an outage of any length, gRPC tries a member again within two seconds: gRPC adds up to a
  // fifth to the backoff.
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 1_600,
  // Otherwise a new client would share the former client's connection, which may be dead.
  'grpc.use_local_subchannel_pool': 1,
  // Holds one page while another is processed, or the events of a paused watch.
  'grpc-node.flow_control_window': 8 * 1024 * 1024,
};

export class Members {
  readonly #readTls: () => EtcdTls | undefined;
  #tls: EtcdTls | undefined;
  #members: readonly Member[];
  #current = 0;
  #isClosed = false;

  /**
   * `readTls`: called again after a failed call, because certificates are renewed in place; throws
   * CacheError. Throws an Error if an endpoint is not a URL.
   */
  constructor(endpoints: readonly string[], readTls: () => EtcdTls | undefined) {
    this.#readTls = readTls;
    this.#tls = readTls();
    this.#members = endpoints.map((endpoint) => connected(endpoint, this.#tls));
  }

  get all(): readonly Member[] {
    return this.#members;
  }

  get current(): Member {
    const member = this.#members[this.#current];
    if (member === undefined) throw new Error('a client of etcd needs an endpoint');
    return member;
  }

  /**
   * This endpoint did not answer. If it is the current one, the next call goes to the next
   * endpoint, with the certificate now in the files.
   */
  moveOn(endpoint: string): void {
    if (endpoint !== this.current.endpoint) return;
    this.#current = (this.#current + 1) % this.#members.length;
    const tls = this.#tlsNow();
    if (isDeepStrictEqual(tls, this.#tls)) return;
    this.#tls = tls;
    this.#replace(() => true);
  }

  /** Replaces a connection that does not answer: it may be dead, and TCP's retries become rarer. */
  reconnect(silent: Member): void {
    this.#replace((member) => member === silent);
  }

  close(): void {
    this.#isClosed = true;
    for (const { client } of this.#members) client.close();
  }

  #replace(isMeant: (member: Member) => boolean): void {
    if (this.#isClosed) return;
    this.#members = this.#members.map((member) => {
      if (!isMeant(member)) return member;
      member.client.close();
      return connected(member.endpoint, this.#tls);
    });
  }

  /**
   * Ignores files that do not match yet, such as half of a new pair. They are read again after the
   * next failure.
   */
  #tlsNow(): EtcdTls | undefined {
    try {
      return this.#readTls();
    } catch (error) {
      if (error instanceof CacheError) return this.#tls;
      throw error;
    }
  }
}

function connected(endpoint: string, tls: EtcdTls | undefined): Member {
  const { host, protocol } = new URL(endpoint);
  return { endpoint, client: new Client(host, channelCredentials(protocol, tls), channelOptions) };
}

function channelCredentials(protocol: string, tls: EtcdTls | undefined): ChannelCredentials {
  if (protocol !== 'https:') return credentials.createInsecure();
  const [ca, key, certificate] = [tls?.ca, tls?.key, tls?.certificate].map((text) => (text === undefined ? null : Buffer.from(text)));
  return credentials.createSsl(ca, key, certificate);
}
