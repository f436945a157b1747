/**
 * The headers that a backend gets, and those that a client gets back. Pure.
 *
 * HEADERS-1 Who asks is said by the proxy alone: every header that says so is removed in whatever case it comes, also where the proxy says nothing.
 * HEADERS-2 What is about one connection (RFC 9110, 7.6.1) stays on it. In whose name a request asks is not, whatever its Connection says: a backend that
 *    did not learn of it would answer as to the caller.
 * HEADERS-3 Node reads and writes a character for each byte. A text is written as the bytes of its UTF-8, as Go does, so that none becomes another one.
 */
import { asksInAnothersName } from '../http/impersonation.js';
import { withoutTokens } from './bearer-token.js';

export type IdentityHeaders = Readonly<{ user: string; group: string; extraPrefix: string }>;

/** Who asks, as the proxy has verified it. User, groups and extra values are header values: a character for each byte. */
export type Identity = Readonly<{
  user: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
  /** A token said so, which no backend has any use for then. */
  isByToken?: true;
}>;

/** Names in lower case. */
export type HeaderLines = Readonly<Record<string, string | readonly string[]>>;

export type ForwardedRequest = Readonly<{
  /** As they came, names and values in turn; pseudo headers of HTTP/2 are not looked at. */
  rawHeaders: readonly string[];
  /** What the client asked for as the host. */
  authority: string;
  clientAddress: string;
  /** Undefined: the backend finds out, by a token for example. */
  identity: Identity | undefined;
}>;

/** What kcp's servers believe from a proxy, unless a mapping names others. */
export const usualHeaders: IdentityHeaders = { user: 'x-remote-user', group: 'x-remote-group', extraPrefix: 'x-remote-extra-' };
/** Beside those that a mapping names. */
const believed: readonly string[] = [usualHeaders.user, usualHeaders.group, 'x-remote-uid'];
const protocolHeader = 'sec-websocket-protocol';
const ofOneConnection: ReadonlySet<string> = new Set([
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
/** Said anew: the host, and what has been expected of this end. */
const saidAnew: ReadonlySet<string> = new Set(['host', 'expect', 'content-length', 'x-forwarded-for']);

export function requestHeaders({ rawHeaders, authority, clientAddress, identity }: ForwardedRequest, names: IdentityHeaders): HeaderLines {
  const headers = new Map<string, string | readonly string[]>();
  const lines = linesOf(rawHeaders);
  const dropped = namedByConnection(lines);
  for (const [name, value] of lines) {
    if (name.startsWith(':') || ofOneConnection.has(name) || saidAnew.has(name) || saysWhoAsks(name, names)) continue;
    if (dropped.has(name) && !asksInAnothersName(name)) continue;
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
  // A name of every kind is a member of its own, whatever objects have by themselves.
  return Object.fromEntries(headers);
}

/** How long they are at most in HPACK: 12 bytes beside each name and value, as nghttp2 counts before it writes them. */
export function headerBlockBytesMax(headers: HeaderLines): number {
  let bytes = 12;
  for (const [name, values] of Object.entries(headers)) for (const value of [values].flat()) bytes += name.length + value.length + 12;
  return bytes;
}

/** Answers that have no body, whatever their server has sent behind the headers. */
export const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** `headers`: as Node has them of an answer. Those of HTTP/2's own are left out, and the length of a 204 or 205, which have no body: HTTP/2 takes it for an error. */
export function answerHeaders(status: number, headers: Readonly<Record<string, string | string[] | number | undefined>>): HeaderLines {
  const kept = new Map<string, string | string[]>();
  const dropped = new Set(
    String(headers['connection'] ?? '')
      .split(',')
      .map((each) => each.trim().toLowerCase()),
  );
  if (status !== 304 && bodiless.has(status)) dropped.add('content-length');
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':') || ofOneConnection.has(name) || dropped.has(name)) continue;
    kept.set(name, typeof value === 'number' ? String(value) : value);
  }
  return Object.fromEntries(kept);
}

/** As they came, names in lower case. */
export function linesOf(rawHeaders: readonly string[]): readonly (readonly [name: string, value: string])[] {
  const lines: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push([(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']);
  return lines;
}

function namedByConnection(lines: readonly (readonly [string, string])[]): ReadonlySet<string> {
  const values = lines.filter(([name]) => name === 'connection').flatMap(([, value]) => value.split(','));
  return new Set(values.map((each) => each.trim().toLowerCase()));
}

/** A backend written in Go takes '_' for itself, but something between may not. */
function saysWhoAsks(name: string, { user, group, extraPrefix }: IdentityHeaders): boolean {
  const plain = name.replaceAll('_', '-');
  return [...believed, user, group].includes(plain) || plain.startsWith(usualHeaders.extraPrefix) || plain.startsWith(extraPrefix);
}

function append(headers: Map<string, string | readonly string[]>, name: string, value: string): void {
  const before = headers.get(name);
  headers.set(name, before === undefined ? value : [...(typeof before === 'string' ? [before] : before), value]);
}

/** A text as Node writes it: a character for each byte of its UTF-8. */
export function asHeaderValue(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/**
 * As Go's url.PathEscape, in lower case because headers of HTTP/2 are, and capitals escaped because they would be lost, and parentheses because no name of a
 * header has any: what reads it decodes either.
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
