/** The bearer token of a request: in its Authorization, or where a browser that opens a websocket can put it, in a subprotocol. Pure. */
import type { IncomingHttpHeaders } from 'node:http';

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.';
const base64url = /^[\w-]+$/;

/** Undefined: it has none. As kube-apiserver reads it: what follows the token in Authorization is not looked at. */
export function bearerTokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization = '', upgrade = '', 'sec-websocket-protocol': protocols = '' } = headers;
  const [scheme = '', token = ''] = authorization.split(' ');
  // A character for each byte, as Node reads headers.
  if (scheme.toLowerCase() === 'bearer' && token !== '') return Buffer.from(token, 'latin1').toString();
  return upgrade.toLowerCase() === 'websocket' ? tokenIn(protocolsIn(protocols)) : undefined;
}

/** One beside other subprotocols: the server must have one to choose. */
function tokenIn(protocols: readonly string[]): string | undefined {
  const [carrier = '', ...more] = protocols.filter(carriesToken);
  const encoded = carrier.slice(protocolPrefix.length);
  if (more.length > 0 || protocols.length < 2 || !base64url.test(encoded)) return undefined;
  return Buffer.from(encoded, 'base64url').toString();
}

/** The subprotocols of a websocket without those that carry a token. */
export function withoutTokens(protocols: string): string {
  return protocolsIn(protocols)
    .filter((protocol) => !carriesToken(protocol))
    .join(', ');
}

function protocolsIn(header: string): readonly string[] {
  return header.split(',').map((each) => each.trim());
}

function carriesToken(protocol: string): boolean {
  return protocol.startsWith(protocolPrefix);
}
