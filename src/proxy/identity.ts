/**
 * The identity that a backend receives, from the certificate of the connection. Headers count only
 * if the certificate belongs to an authenticating proxy, such as a shard that passes on a request
 * for a mounted Workspace. In all cases only groups that may be passed on remain.
 *
 * IDENTITY-1 The backend reads exactly what was checked here. A certificate names nobody if a
 *    header cannot carry its names unchanged.
 * IDENTITY-2 The front door makes nobody authenticated: a caller whom the headers name as
 *    unauthenticated stays so.
 */
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { anonymous, withAuthenticated, type Caller } from '../domain/caller.js';
import { isHeaderValue } from '../domain/base/http-header.js';
import { asHeaderValue, linesOf, usualHeaders, type Identity } from './forwarded-headers.js';

/** The key under which Kubernetes records the credential of a caller. */
const credentialKey = 'authentication.kubernetes.io/credential-id';
/**
 * The credential of each connection; '' without a certificate. The certificate is parsed once,
 * because it never changes.
 */
const credentials = new WeakMap<object, string>();

/**
 * `untrusted`: a certificate was shown, and no CA vouches for it (any more), or no header can carry
 * its names. Undefined: there is no certificate, or an authenticating proxy has it, and its headers
 * name no user. The backend then requires a token.
 */
export function identityOf(caller: Caller, request: IncomingMessage, groups: GroupRules): Identity | 'untrusted' | undefined {
  if (caller.isAuthenticatingProxy === true) return assertedIdentity(request.rawHeaders, groups);
  const credential = credentialOf(request);
  if (credential === '') return undefined;
  if (caller === anonymous || ![caller.user, ...caller.groups].every(isHeaderValue)) return 'untrusted';
  const passed = passedGroups(withAuthenticated(caller.user, caller.groups), groups);
  return { user: asHeaderValue(caller.user), groups: passed.map(asHeaderValue), extra: { [credentialKey]: [credential] } };
}

/**
 * Reads the identity headers as servers of Kubernetes do. `rawHeaders`: names and values in turn.
 */
function assertedIdentity(rawHeaders: readonly string[], rules: GroupRules): Identity | undefined {
  const users: string[] = [];
  const groups: string[] = [];
  const extra = new Map<string, string[]>();
  const { user: userHeader, group: groupHeader, extraPrefix } = usualHeaders;
  for (const [name, value] of linesOf(rawHeaders)) {
    if (name === userHeader) users.push(value);
    else if (name === groupHeader && value !== '') groups.push(value);
    else if (name.startsWith(extraPrefix)) {
      // The key is unescaped after `linesOf` made the name lower case, so escaped capitals remain.
      const key = unescapeKey(name.slice(extraPrefix.length));
      extra.set(key, [...(extra.get(key) ?? []), value]);
    }
  }
  const [user = ''] = users;
  if (user === '') return undefined;
  const asSaid = new Map(withAuthenticated(user, groups).map((group) => [asText(group), group]));
  const passed = passedGroups([...asSaid.keys()], rules).map((group) => asSaid.get(group) ?? group);
  return { user, groups: passed, extra: Object.fromEntries(extra) };
}

/** Decodes a header value, which Node reads as one character per byte. */
function asText(value: string): string {
  return Buffer.from(value, 'latin1').toString();
}

function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function credentialOf(request: IncomingMessage): string {
  // Over HTTP/2 Node gives each request its own socket object, so use the session instead.
  const { stream } = request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>;
  const connection = stream?.session ?? request.socket;
  const known = credentials.get(connection);
  if (known !== undefined) return known;
  const fingerprint = (request.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256;
  const credential = fingerprint === undefined ? '' : `X509SHA256=${fingerprint.replaceAll(':', '').toLowerCase()}`;
  credentials.set(connection, credential);
  return credential;
}

export type GroupRules = Readonly<{
  /** Patterns: a group, or a prefix and '*'. Empty: all groups pass. */
  passed: readonly string[];
  dropped: readonly string[];
}>;

const neverPassed: readonly string[] = [
  'system:masters',
  'system:kcp:logical-cluster-admin',
  'system:kcp:initializer:*',
  'system:kcp:terminator:*',
];

/**
 * Which groups of a caller are passed on. Pure.
 *
 * GROUPS-1 Groups for traffic within kcp are never passed on, even if an option says so. Otherwise
 *    a caller with such a group in its certificate would have access everywhere.
 *
 * Sorted, without duplicates.
 */
export function passedGroups(groups: readonly string[], { passed, dropped }: GroupRules): readonly string[] {
  const isDropped = (group: string): boolean => [...neverPassed, ...dropped].some((pattern) => matches(pattern, group));
  const isPassed = (group: string): boolean => passed.length === 0 || passed.some((pattern) => matches(pattern, group));
  return [...new Set(groups)].filter((group) => isPassed(group) && !isDropped(group)).toSorted();
}

function matches(pattern: string, group: string): boolean {
  return pattern.endsWith('*') ? group.startsWith(pattern.slice(0, -1)) : group === pattern;
}
