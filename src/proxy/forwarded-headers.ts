/**
 * The headers of a request to a backend, and of the answer to the client. Pure.
 *
 * HEADERS-1 Only the proxy says who the caller is. Every identity header of the request is removed,
 *    in any case of letters, even if the proxy adds none.
 * HEADERS-2 Hop-by-hop headers (RFC 9110, 7.6.1) are not forwarded. Impersonation headers are
 *    always forwarded, whatever Connection says: without them a backend would act for the caller
 *    itself.
 * HEADERS-3 Node reads and writes headers as one character per byte. Text is written as its UTF-8
 *    bytes, as Go does, so that no name turns into another one.
 */
import { isImpersonationHeader } from '../http/impersonation.js';
import { withoutTokens } from './bearer-token.js';

export type IdentityHeaders = Readonly<{ user: string; group: string; extraPrefix: string }>;

/**
 * The caller, as the proxy has verified it. User, groups and extra values are header values: one
 * character per byte.
 */
export type Identity = Readonly<{
  user: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
  /**
   * Set if a token named the caller. The proxy then removes the token, because the backend does not
   * need it.
   */
  isByToken?: true;
}>;

/** Names are in lower case. */
export type HeaderLines = Readonly<Record<string, string | readonly string[]>>;

export type ForwardedRequest = Readonly<{
  /** The headers as received: names and values in turn. Pseudo headers of HTTP/2 are ignored. */
  rawHeaders: readonly string[];
  /** The host of the request. */
  authority: string;
  clientAddress: string;
  /** Undefined: the backend authenticates the request, for example by a token. */
  identity: Identity | undefined;
}>;

/** The identity headers that kcp's servers trust, unless a mapping names others. */
export const usualHeaders: IdentityHeaders = { user: 'x-remote-user', group: 'x-remote-group', extraPrefix: 'x-remote-extra-' };
/** Identity headers that are removed in addition to those that a mapping names. */
const trustedByKcp: readonly string[] = [usualHeaders.user, usualHeaders.group, 'x-remote-uid'];
const protocolHeader = 'sec-websocket-protocol';
const hopByHopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
/** Headers that the proxy sets itself, and `expect`, which the proxy has answered already. */
const setByProxy: ReadonlySet<string> = new Set(['host', 'expect', 'content-length', 'x-forwarded-for']);

export function requestHeaders({ rawHeaders, authority, clientAddress, identity }: ForwardedRequest, names: IdentityHeaders): HeaderLines {
  const headers = new Map<string, string | readonly string[]>();
  const lines = linesOf(rawHeaders);
  const dropped = namedByConnection(lines);
  for (const [name, value] of lines) {
    if (name.startsWith(':') || hopByHopHeaders.has(name) || setByProxy.has(name) || isIdentityHeader(name, names)) continue;
    if (dropped.has(name) && !isImpersonationHeader(name)) continue;
    if (identity?.isByToken !== true || name !== 'authorization') append(headers, name, value);
  }
  const protocols = headers.get(protocolHeader);
  if (identity?.isByToken === true && protocols !== undefined) headers.set(protocolHeader, withoutTokens([protocols].flat().join(',')));
  const length = lines.find(([name]) => name === 'content-length');
  if (length !== undefined) headers.set('content-length', length[1]);
  const forwardedFor = lines.filter(([name]) => name === 'x-forwarded-for').map(([, value]) => value);
  headers.set('x-forwarded-for', [...forwardedFor, clientAddress].join(', '));
  if (authority !== '') headers.set(':authority', authority);
  if (identity !== undefined) {
    headers.set(names.user, identity.user);
    if (identity.groups.length > 0) headers.set(names.group, identity.groups);
    for (const [key, values] of Object.entries(identity.extra)) headers.set(`${names.extraPrefix}${escapeKey(key)}`, values);
  }
  // fromEntries makes every name an own property, even `__proto__`.
  return Object.fromEntries(headers);
}

/**
 * An upper bound of the size in HPACK, as nghttp2 estimates it: the texts, 12 bytes for each line,
 * and 12 for the block.
 */
export function headerBlockBytesMax(headers: HeaderLines): number {
  let bytes = 12;
  for (const [name, values] of Object.entries(headers)) for (const value of [values].flat()) bytes += name.length + value.length + 12;
  return bytes;
}

/** Statuses of answers without a body, even if the server sends one. */
export const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * `headers`: the backend's, as Node provides them. Pseudo headers of HTTP/2 are left out. So is the
 * length of a 204 or 205: these have no body, and HTTP/2 treats a length as an error.
 */
export function answerHeaders(status: number, headers: Readonly<Record<string, string | string[] | number | undefined>>): HeaderLines {
  const kept = new Map<string, string | string[]>();
  const dropped = new Set(
    String(headers['connection'] ?? '')
      .split(',')
      .map((each) => each.trim().toLowerCase()),
  );
  if (status !== 304 && bodiless.has(status)) dropped.add('content-length');
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':') || hopByHopHeaders.has(name) || dropped.has(name)) continue;
    kept.set(name, typeof value === 'number' ? String(value) : value);
  }
  return Object.fromEntries(kept);
}

/** The lines are in the order received. Names are in lower case. */
export function linesOf(rawHeaders: readonly string[]): readonly (readonly [name: string, value: string])[] {
  const lines: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push([(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']);
  return lines;
}

function namedByConnection(lines: readonly (readonly [string, string])[]): ReadonlySet<string> {
  const values = lines.filter(([name]) => name === 'connection').flatMap(([, value]) => value.split(','));
  return new Set(values.map((each) => each.trim().toLowerCase()));
}

/** A backend in Go does not treat '_' as '-', but a proxy in front of it may. */
function isIdentityHeader(name: string, { user, group, extraPrefix }: IdentityHeaders): boolean {
  const plain = name.replaceAll('_', '-');
  return [...trustedByKcp, user, group].includes(plain) || plain.startsWith(usualHeaders.extraPrefix) || plain.startsWith(extraPrefix);
}

function append(headers: Map<string, string | readonly string[]>, name: string, value: string): void {
  const before = headers.get(name);
  headers.set(name, before === undefined ? value : [...(typeof before === 'string' ? [before] : before), value]);
}

/** Encodes a text as Node writes headers: one character for each byte of its UTF-8. */
export function asHeaderValue(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/**
 * Escapes as Go's url.PathEscape, but in lower case, because HTTP/2 requires it. Capitals are
 * escaped because they would be lost, and parentheses because header names may not have any. The
 * backend decodes escapes in either case of letters.
 */
function escapeKey(key: string): string {
  return encodeURIComponent(key)
    .replaceAll('%3A', ':')
    .replaceAll('%40', '@')
    .replaceAll('%24', '$')
    .replaceAll('%26', '&')
    .replaceAll('%2B', '+')
    .replaceAll('%3D', '=')
    .replaceAll(/%..|[A-Z()]/g, (found) => (found.length > 1 ? found.toLowerCase() : `%${found.charCodeAt(0).toString(16)}`));
}
