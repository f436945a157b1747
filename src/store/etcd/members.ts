/** The connections to the members of an etcd, one to each. */
import { Client, credentials, type ChannelCredentials } from '@grpc/grpc-js';

/** PEM. Undefined: the CAs that Node trusts, and no certificate. Endpoints of http are asked without TLS. */
export type EtcdTls = Readonly<{ ca: string; certificate: string | undefined; key: string | undefined }>;

export type Member = Readonly<{ endpoint: string; client: Client }>;

/** A page of large objects has more than gRPC takes by default; etcd bounds what it is sent itself. */
const channelOptions = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.enable_http_proxy': 0,
  // A page arrives while another is worked on. As much of a watch that is paused may wait here.
  'grpc-node.flow_control_window': 8 * 1024 * 1024,
};

/** Each is opened when something is asked of it. Throws an Error for an endpoint that is no URL. */
export function connected(endpoints: readonly string[], tls: EtcdTls | undefined): readonly Member[] {
  return endpoints.map((endpoint) => {
    const { host, protocol } = new URL(endpoint);
    return { endpoint, client: new Client(host, channelCredentials(protocol, tls), channelOptions) };
  });
}

function channelCredentials(protocol: string, tls: EtcdTls | undefined): ChannelCredentials {
  if (protocol !== 'https:') return credentials.createInsecure();
  const [ca, key, certificate] = [tls?.ca, tls?.key, tls?.certificate].map((text) => (text === undefined ? null : Buffer.from(text)));
  return credentials.createSsl(ca, key, certificate);
}
