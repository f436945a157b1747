/**
 * Who asks, as a backend is told: by the certificate that the connection was opened with, and by nothing that the request says. Its groups are those that
 * may be passed on. A certificate whose names a header cannot carry as they are names nobody: what a backend reads must be what was checked here.
 */
import type { TLSSocket } from 'node:tls';
import { anonymous, type Caller } from '../domain/caller.js';
import type { Identity } from './forwarded-headers.js';
import { passedGroups, type GroupRules } from './passed-groups.js';

/** As Kubernetes names the credential that somebody has shown. */
const credentialKey = 'authentication.kubernetes.io/credential-id';
/** Of a connection: '' where it shows no certificate. It does not change, and reading it again for each request would parse it again. */
const credentials = new WeakMap<TLSSocket, string>();

/** `untrusted`: a certificate was shown, and nobody vouches for it (any more). Undefined: none was shown, and the backend asks for a token. */
export function identityOf(caller: Caller, socket: TLSSocket, groups: GroupRules): Identity | 'untrusted' | undefined {
  const credential = credentialOf(socket);
  if (credential === '') return undefined;
  if (caller === anonymous || ![caller.user, ...caller.groups].every(isHeaderValue)) return 'untrusted';
  return { user: caller.user, groups: passedGroups(caller.groups, groups), extra: { [credentialKey]: [credential] } };
}

/** Blanks at its ends would be lost, and control characters end a header. */
function isHeaderValue(text: string): boolean {
  return text !== '' && text.trim() === text && !/\p{Cc}/u.test(text);
}

function credentialOf(socket: TLSSocket): string {
  const known = credentials.get(socket);
  if (known !== undefined) return known;
  const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
  const credential = fingerprint === undefined ? '' : `X509SHA256=${fingerprint.replaceAll(':', '').toLowerCase()}`;
  credentials.set(socket, credential);
  return credential;
}
