/**
 * Shared by all requests to backends: the credentials, the time limits of HTTP/1.1, and the errors.
 */
import type { ClientRequest } from 'node:http';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { limitInterim } from '../domain/base/interim-answers.js';

/**
 * PEM texts: `ca` verifies the backend's certificate; the proxy shows `cert` and `key`. The object
 * is replaced only when a text changes.
 */
export type BackendCredentials = Readonly<{ ca: string; cert: string; key: string }>;

/** Nothing of the request reached the backend. */
export class NotSent extends CacheError {}
/** The request was not sent: no connection accepts headers of that length. */
export class TooLong extends CacheError {}
/** The request may have reached the backend, and no whole answer arrived. */
export class BrokenOff extends CacheError {}

export const otherProtocol = 'the server switched to a protocol that nobody asked for';

export const openMsMax = 3_000;
export const pingIntervalMs = 10_000;
/**
 * The time to the beginning of an answer over HTTP/1.1: a little more than Kubernetes servers give
 * a request.
 */
export const answerMsMax = 65_000;

/**
 * Throws BrokenOff for an answer with another transfer coding than chunked, because Node passes on
 * its bytes still encoded.
 */
export function assertDecoded(headers: Readonly<Record<string, unknown>>): void {
  if (/^(?:chunked)?$/i.test(String(headers['transfer-encoding'] ?? ''))) return;
  throw new BrokenOff('the server has answered in another transfer coding than chunked');
}

/**
 * Without `servername` Node verifies the server against the Host header, which the client chooses.
 */
export function serverOf(origin: string): Readonly<{ host: string; port: string; servername: string }> {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: port || '443', servername: isIP(host) === 0 ? host : '' };
}

/**
 * Limits a request over HTTP/1.1, which has no pings. Calls `late` if the connection or the answer
 * is late, or if too many 1xx answers precede it. Returns a function that ends the time limits; the
 * caller runs it when the answer has begun.
 */
export function limitTime(
  outgoing: ClientRequest,
  clock: Clock,
  { withinMs, late }: Readonly<{ withinMs: number | undefined; late: (error: Error) => void }>,
): () => void {
  const end = (): void => late(new CacheError('the server does not answer'));
  let cancel = clock.after(openMsMax, end);
  const connected = (): void => {
    cancel();
    cancel = withinMs === undefined ? () => {} : clock.after(withinMs, end);
  };
  outgoing.once('socket', (socket: TLSSocket) => {
    socket.setKeepAlive(true, pingIntervalMs);
    if (socket.connecting || !socket.authorized) socket.once('secureConnect', connected);
    else connected();
  });
  outgoing.once('close', () => cancel());
  limitInterim(outgoing, late);
  return () => cancel();
}

export function failed(isSent: boolean, cause: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  return isSent
    ? new BrokenOff('the server has ended the request', { cause })
    : new NotSent('the server has not accepted the request', { cause });
}
