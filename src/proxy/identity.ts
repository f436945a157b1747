/**
 * Who asks, as a backend is told: by the certificate that the connection was opened with. What the request itself says counts only where that is the certificate
 * of an authenticating proxy, as of a shard that passes on a request for a mounted Workspace. Groups are those that may be passed on, wherever they come from.
 *
 * IDENTITY-1 What a backend reads is what was checked here: a certificate whose names a header cannot carry as they are names nobody.
 * IDENTITY-2 Nobody becomes authenticated by passing through: who is named as not authenticated stays so.
 */
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { anonymous, withAuthenticated, type Caller } from '../domain/caller.js';
import { isHeaderValue } from '../domain/header-value.js';
import { asHeaderValue, linesOf, usualHeaders, type Identity } from './forwarded-headers.js';
import { passedGroups, type GroupRules } from './passed-groups.js';

/** As Kubernetes names the credential that somebody has shown. */
const credentialKey = 'authentication.kubernetes.io/credential-id';
/** Of a connection: '' where it shows no certificate. It does not change, and reading it again for each request would parse it again. */
const credentials = new WeakMap<object, string>();

/**
 * `untrusted`: a certificate was shown, and nobody vouches for it (any more). Undefined: none was shown, or that of an authenticating proxy that says of
 * nobody that they ask, and the backend asks for a token.
 */
export function identityOf(caller: Caller, request: IncomingMessage, groups: GroupRules): Identity | 'untrusted' | undefined {
  if (caller.isAuthenticatingProxy === true) return assertedIdentity(request.rawHeaders, groups);
  const credential = credentialOf(request);
  if (credential === '') return undefined;
  if (caller === anonymous || ![caller.user, ...caller.groups].every(isHeaderValue)) return 'untrusted';
  const passed = passedGroups(withAuthenticated(caller.user, caller.groups), groups);
  return { user: asHeaderValue(caller.user), groups: passed.map(asHeaderValue), extra: { [credentialKey]: [credential] } };
}

/** What the headers say, read as servers of Kubernetes read them. `rawHeaders`: names and values in turn. */
function assertedIdentity(rawHeaders: readonly string[], rules: GroupRules): Identity | undefined {
  const users: string[] = [];
  const groups: string[] = [];
  const extra = new Map<string, string[]>();
  const { user: userHeader, group: groupHeader, extraPrefix } = usualHeaders;
  for (const [name, value] of linesOf(rawHeaders)) {
    if (name === userHeader) users.push(value);
    else if (name === groupHeader && value !== '') groups.push(value);
    else if (name.startsWith(extraPrefix)) {
      // In lower case first, so that what is escaped keeps its own.
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

/** What a header says, which Node reads as a character for each byte. */
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
  // Over HTTP/2 each request has a socket of its own, which stands for that of the session.
  const { stream } = request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>;
  const connection = stream?.session ?? request.socket;
  const known = credentials.get(connection);
  if (known !== undefined) return known;
  const fingerprint = (request.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256;
  const credential = fingerprint === undefined ? '' : `X509SHA256=${fingerprint.replaceAll(':', '').toLowerCase()}`;
  credentials.set(connection, credential);
  return credential;
}
