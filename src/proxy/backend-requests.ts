/** What all requests to backends share: what is shown to them, how one over HTTP/1.1 is kept to its time, and what an error says of it. */
import type { ClientRequest } from 'node:http';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { limitInterim } from '../domain/interim-answers.js';

/** How a backend is spoken to: what it shows is checked against `ca`, and it is shown the pair. PEM texts. The same object as long as they are the same. */
export type BackendCredentials = Readonly<{ ca: string; cert: string; key: string }>;

/** Nothing of the request has reached the backend. */
export class NotSent extends CacheError {}
/** Nor will it: no connection takes headers of that length. */
export class TooLong extends CacheError {}
/** It may have, and no answer came. */
export class BrokenOff extends CacheError {}

export const otherProtocol = 'the server goes on in a protocol that nobody asked for';

export const openMsMax = 3_000;
export const pingIntervalMs = 10_000;
/** Over HTTP/1.1, until an answer begins; as long as servers of Kubernetes give a request, and a little. */
export const answerMsMax = 65_000;

/** Throws BrokenOff for an answer in another transfer coding than chunked, of which Node hands over the bytes as they were encoded. */
export function assertDecoded(headers: Readonly<Record<string, unknown>>): void {
  if (/^(?:chunked)?$/i.test(String(headers['transfer-encoding'] ?? ''))) return;
  throw new BrokenOff('the server has answered in another transfer coding than chunked');
}

/** Without a name Node checks the server against the host that the client has asked for, which may be anything. */
export function serverOf(origin: string): Readonly<{ host: string; port: string; servername: string }> {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: port || '443', servername: isIP(host) === 0 ? host : '' };
}

/**
 * A request over HTTP/1.1, which has no pings: ends it if there is no connection, and no answer, in time or before too many of a 1xx. Returns what says that
 * there is nothing more to wait for.
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
    : new NotSent('the server has not taken the request', { cause });
}
