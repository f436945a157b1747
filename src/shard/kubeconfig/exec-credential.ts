/**
 * The output of an exec plugin: an ExecCredential (k8s.io/client-go/pkg/apis/clientauthentication).
 * Everything that client-go refuses is refused. No error repeats any of the output, because invalid
 * output may contain a valid secret.
 */
import { checkPair } from '../../certificates/pair-files.js';
import { membersOf } from '../../domain/base/members.js';
import { CacheError } from '../../domain/errors.js';

export type ExecCredential = Readonly<{
  /** The Authorization header. */
  authorization?: string;
  /** PEM; both or neither. */
  certificate?: string;
  key?: string;
  /** By the wall clock; undefined: valid as long as the shard accepts it. */
  expiresMs: number | undefined;
}>;

/** Throws Error with what is wrong. */
export function parseExecCredential(answer: string, apiVersion: string): ExecCredential {
  const { kind, apiVersion: answered, status } = membersOf(parse(answer));
  if (kind !== 'ExecCredential') throw new Error('the kind of its answer is not ExecCredential');
  if (answered !== apiVersion) throw new Error(`the apiVersion of its answer is not ${apiVersion}, as the kubeconfig says`);
  if (typeof status !== 'object' || status === null) throw new Error('its answer has no status');

  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = membersOf(status);
  const certificate = textOf(clientCertificateData, 'clientCertificateData');
  const key = textOf(clientKeyData, 'clientKeyData');
  const bearer = textOf(token, 'token');
  const expiration = textOf(expirationTimestamp, 'expirationTimestamp');
  if (certificate === '' && key === '' && bearer === '') throw new Error('its answer has neither a token nor a certificate');
  if ((certificate === '') !== (key === '')) throw new Error('its answer has only one of a certificate and its key');
  if (certificate !== '') checkPair({ cert: certificate, key }, { certFile: 'its clientCertificateData', keyFile: 'its clientKeyData' });
  const expiresMs = expiration === '' ? undefined : Date.parse(expiration);
  if (Number.isNaN(expiresMs)) throw new Error('the expirationTimestamp of its answer is not a time');
  return {
    ...(bearer !== '' && { authorization: formatBearer(bearer, 'the token of its answer') }),
    ...(certificate !== '' && { certificate, key }),
    expiresMs,
  };
}

function parse(answer: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    throw new Error('its answer is not JSON');
  }
}

/** '' and null count as absent, as in Go. */
function textOf(value: unknown, name: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new Error(`the ${name} of its answer is not a string`);
  return value;
}

/**
 * The Authorization header for a token. Throws CacheError, without the token, if no header can
 * carry it; `what` names its source.
 */
export function formatBearer(token: string, what: string): string {
  if (token === '') throw new CacheError(`${what} is empty`);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CacheError(`${what} has characters that no HTTP header can carry`);
  return `Bearer ${token}`;
}
