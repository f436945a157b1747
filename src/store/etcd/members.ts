/**
 * The connections to the members of an etcd, one to each, and which of them is asked. Each is opened when something is asked of it. What is under way on a connection
 * that is replaced goes on.
 */
import { isDeepStrictEqual } from 'node:util';
import { Client, credentials, type ChannelCredentials } from '@grpc/grpc-js';
import { CacheError } from '../../domain/errors.js';

/** PEM. Undefined: the CAs that Node trusts, and no certificate. Endpoints of http are asked without TLS. */
export type EtcdTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

export type Member = Readonly<{ endpoint: string; client: Client }>;

/** A page of large objects has more than gRPC takes by default; etcd bounds what it is sent itself. */
const channelOptions = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.enable_http_proxy': 0,
  // After an outage, however long it was, a member is tried again within two seconds; gRPC adds up to a fifth.
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 1_600,
  // Else a client that is opened anew shares the connection of the former one, which may be dead.
  'grpc.use_local_subchannel_pool': 1,
  // A page arrives while another is worked on. As much of a watch that is paused may wait here.
  'grpc-node.flow_control_window': 8 * 1024 * 1024,
};

export class Members {
  readonly #readTls: () => EtcdTls | undefined;
  #tls: EtcdTls | undefined;
  #members: readonly Member[];
  #current = 0;
  #isClosed = false;

  /** `readTls`: read again when a call has failed, because certificates are renewed in place; throws CacheError. Throws an Error for an endpoint that is no URL. */
  constructor(endpoints: readonly string[], readTls: () => EtcdTls | undefined) {
    this.#readTls = readTls;
    this.#tls = readTls();
    this.#members = endpoints.map((endpoint) => connected(endpoint, this.#tls));
  }

  get all(): readonly Member[] {
    return this.#members;
  }

  /** The next call goes there. */
  get current(): Member {
    const member = this.#members[this.#current];
    if (member === undefined) throw new Error('a client of etcd needs an endpoint');
    return member;
  }

  /** That endpoint has not answered: the next call goes elsewhere, with the certificate that is there by now, if it would go there. */
  moveOn(endpoint: string): void {
    if (endpoint !== this.current.endpoint) return;
    this.#current = (this.#current + 1) % this.#members.length;
    const tls = this.#tlsNow();
    if (isDeepStrictEqual(tls, this.#tls)) return;
    this.#tls = tls;
    this.#replace(() => true);
  }

  /** A connection that does not answer may be dead, and TCP tries it again later and later: the next call opens another. */
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

  /** Half of a new pair is no pair: it is read again after the next failure. */
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
