/**
 * The bearer token of a request: from the Authorization header, or from a websocket subprotocol,
 * because browsers cannot set headers on a websocket. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http';

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.';
const base64url = /^[\w-]+$/;

/**
 * Undefined: the request has no token. As in kube-apiserver, text after the token in Authorization
 * is ignored.
 */
export function bearerTokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization = '', upgrade = '', 'sec-websocket-protocol': protocols = '' } = headers;
  const [scheme = '', token = ''] = authorization.split(' ');
  // Node reads headers as one character per byte.
  if (scheme.toLowerCase() === 'bearer' && token !== '') return Buffer.from(token, 'latin1').toString();
  return upgrade.toLowerCase() === 'websocket' ? tokenIn(protocolsIn(protocols)) : undefined;
}

/**
 * Exactly one subprotocol must carry a token. Another subprotocol must be beside it, because the
 * server has to choose one.
 */
function tokenIn(protocols: readonly string[]): string | undefined {
  const [carrier = '', ...more] = protocols.filter(carriesToken);
  const encoded = carrier.slice(protocolPrefix.length);
  if (more.length > 0 || protocols.length < 2 || !base64url.test(encoded)) return undefined;
  return Buffer.from(encoded, 'base64url').toString();
}

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
