/** Requests a websocket from a backend, which decides whether to accept it. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import type { Clock } from '../domain/ports.js';
import { UnreadBody } from '../kube/unread-body.js';
import {
  answerMsMax,
  assertDecoded,
  BrokenOff,
  failed,
  limitTime,
  otherProtocol,
  serverOf,
  type BackendCredentials,
} from './backend-requests.js';
import type { HeaderLines } from './forwarded-headers.js';
import { writable } from './written-headers.js';

/** `target`: path and query. */
export type UpgradeRequest = Readonly<{ origin: string; target: string; headers: HeaderLines; signal: AbortSignal }>;

export type UpgradeAnswer = Readonly<{ status: number; headers: IncomingHttpHeaders }> &
  Readonly<{ body: Buffer; socket: undefined; head: undefined } | { body: undefined; socket: Duplex; head: Buffer }>;

/** The maximum body of an answer that refuses an upgrade. */
const refusalBytesMax = 1024 * 1024;

/**
 * Requests a websocket on a new connection. If the backend accepts, `socket` carries the websocket.
 * If it answers in HTTP, `socket` is undefined and `body` is the whole body. Throws NotSent,
 * BrokenOff, or the reason of `signal`.
 */
export function requestUpgrade(
  { origin, target, headers, signal }: UpgradeRequest,
  { ca, cert, key }: BackendCredentials,
  clock: Clock,
): Promise<UpgradeAnswer> {
  const { ':authority': host = '', ...others } = headers;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...serverOf(origin),
      path: target,
      agent: false,
      ca,
      cert,
      key,
      headers: { ...writable(others), ...(host !== '' && { host: String(host) }), connection: 'Upgrade', upgrade: 'websocket' },
      signal,
    });
    let isSent = false;
    outgoing.once('socket', (socket) => socket.once('secureConnect', () => (isSent = true)));
    const begun = limitTime(outgoing, clock, { withinMs: answerMsMax, late: (error) => void outgoing.destroy(error) });
    outgoing.once('upgrade', (answer: IncomingMessage, socket: Duplex, head: Buffer) => {
      begun();
      if (answer.headers.upgrade?.toLowerCase() !== 'websocket') {
        socket.destroy();
        return reject(new BrokenOff(otherProtocol));
      }
      resolve({ status: 101, headers: answer.headers, body: undefined, socket, head });
    });
    let hasBegun = false;
    const fail = (error: unknown): void => reject(failed(isSent, error, signal));
    outgoing.once('response', (answer: IncomingMessage) => {
      hasBegun = true;
      wholeOf(answer, new UnreadBody(answer, { signal }))
        .then(
          (body) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body, socket: undefined, head: undefined }),
          fail,
        )
        .finally(begun);
    });
    // A connection error after the answer began is ignored here: reading the body reports it.
    outgoing.on('error', (error) => {
      if (!hasBegun) fail(error);
    });
    outgoing.end();
  });
}

/** Throws if the body is cut off, cannot be decoded, or is longer than a refusal needs to be. */
async function wholeOf(answer: IncomingMessage, unread: UnreadBody): Promise<Buffer> {
  assertDecoded(answer.headers);
  const body = new GatheredBytes();
  for await (const part of unread as AsyncIterable<Buffer>) {
    body.add(part);
    if (body.bytes > refusalBytesMax) throw new BrokenOff('the answer with which the server refuses the upgrade is too long');
  }
  if (!answer.complete) throw new BrokenOff('the answer was broken off');
  return body.takeJoined();
}
