/**
 * The client's end of the upgrade to a websocket: TLS 1.2 or newer, HTTP/1.1, and a checked server
 * certificate.
 *
 * Bounds: `connectTimeoutMs` for the whole upgrade, including an error response; answerBytesMax
 * bytes of that response; a hundred interim responses (1xx).
 */
import type { IncomingMessage } from 'node:http';
import { WebSocket, type ClientOptions } from 'ws';
import { deferred } from '../domain/base/promises.js';
import { certificateFaultOf, explainCertificateFault } from '../domain/base/certificate-fault.js';
import { CacheError } from '../domain/errors.js';
import { limitInterim } from '../domain/base/interim-answers.js';
import { jsonValue } from '../json/json-value.js';
import type { Clock } from '../domain/ports.js';
import { textAt } from '../domain/base/members.js';
import { FrameSocket } from './frame-socket.js';
import { subprotocol, websocketLimits, type FrameSocketOptions } from './socket-options.js';
import { UpgradeRefused } from './upgrade-refused.js';

/** PEM texts. Without `ca`, the system's CAs are trusted. */
export type ClientIdentity = Readonly<{
  ca: string | undefined;
  /** The file that contains `ca`, for error messages. */
  caFile?: string | undefined;
  certificate: string;
  key: string;
  /** The name that the server's certificate must carry, if it is not the host of the URL. */
  serverName?: string;
}>;

export type ConnectOptions = FrameSocketOptions & Readonly<{ connectTimeoutMs: number }>;

/**
 * `bufferedBytesMax` covers a cache's whole credit, so that a slow network does not end the
 * connection.
 */
export const defaultConnectOptions: ConnectOptions = Object.freeze({
  frameBytesMax: 4 * 1024 * 1024,
  bufferedBytesLow: 1024 * 1024,
  bufferedBytesMax: 64 * 1024 * 1024,
  pingIntervalMs: 15_000,
  pongTimeoutMs: 15_000,
  closeGraceMs: 2_000,
  connectTimeoutMs: 10_000,
});

export type ConnectParts = Readonly<{ clock: Clock; signal: AbortSignal }>;

const answerBytesMax = 16 * 1024;
const messageCharactersMax = 1024;

/** `url`: https or wss. Throws UpgradeRefused or CacheError, and then leaves nothing open. */
export async function connectSocket(
  url: string,
  identity: ClientIdentity,
  { clock, signal }: ConnectParts,
  options: ConnectOptions,
): Promise<FrameSocket> {
  if (!URL.canParse(url)) throw new CacheError(`${JSON.stringify(url)} is not a URL`);
  const { protocol, host } = new URL(url);
  // Nothing is sent unencrypted; the zero mask below is safe only because of that.
  if (protocol !== 'https:' && protocol !== 'wss:') throw new CacheError(`${protocol}//${host} is neither an https nor a wss URL`);
  if (signal.aborted) throw new CacheError(`cannot connect to ${host}: the attempt was canceled`);

  const { promise, resolve, reject } = deferred<FrameSocket>();
  const messageOf = (cause: Error, server: string): string => {
    const fault = certificateFaultOf(cause);
    const trusted =
      identity.ca === undefined ? 'Node trusts' : `${identity.caFile === undefined ? 'its CA' : `a CA in ${identity.caFile}`} signed`;
    return fault === undefined ? cause.message : explainCertificateFault(fault, { server, trusted, wallMs: clock.wallMs() });
  };
  const socket = begin(url, clientOptions(identity, options));
  const fail = (cause: Error): void => {
    reject(cause instanceof UpgradeRefused ? cause : new CacheError(`cannot connect to ${host}: ${messageOf(cause, host)}`, { cause }));
    socket.terminate();
  };
  const abort = (): void => fail(new Error('the attempt was canceled'));
  const cancelTimeout = clock.after(options.connectTimeoutMs, () =>
    fail(new Error(`it did not answer within ${options.connectTimeoutMs / 1000} s`)),
  );
  signal.addEventListener('abort', abort, { once: true });
  // The listener stays after the first error, because a socket that is terminated while it connects
  // emits a second.
  socket.on('error', fail);
  socket.once('unexpected-response', (_, response) => readRefusal(response, fail));
  socket.once('open', () => {
    socket.off('error', fail);
    resolve(new FrameSocket({ socket, peer: host, clock }, options));
  });

  try {
    return await promise;
  } finally {
    cancelTimeout();
    signal.removeEventListener('abort', abort);
  }
}

/** Throws at once if a key or certificate is invalid. */
function begin(url: string, options: ClientOptions): WebSocket {
  try {
    return new WebSocket(url, [subprotocol], options);
  } catch (cause) {
    throw new CacheError(`cannot connect to ${url}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

function clientOptions({ ca, certificate, key, serverName }: ClientIdentity, options: ConnectOptions): ClientOptions {
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    cert: certificate,
    key,
    ...(serverName === undefined ? {} : { servername: serverName }),
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  } as const;
  return {
    ...websocketLimits(options),
    ...tls,
    followRedirects: false,
    finishRequest: (request) => {
      limitInterim(request, (error) => void request.destroy(error));
      request.end();
    },
    // Masks keep scripts in browsers from sending bytes that a proxy would read as HTTP. No proxy
    // can read inside TLS, so this mask is zeros, and ws skips masking with zeros. Masking would
    // copy every body at both ends: 9.6 instead of 3.8 microseconds for an object of 2.5 kB.
    generateMask: (mask) => mask.fill(0),
  };
}

function readRefusal(response: IncomingMessage, fail: (cause: Error) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const finish = (): void => {
    const text = Buffer.concat(chunks).toString('utf8', 0, answerBytesMax);
    const { message, reason } = readStatus(text);
    fail(new UpgradeRefused(response.statusCode ?? 0, message, { reason, retryAfterMs: retryAfterMs(response) }));
  };
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes >= answerBytesMax) finish();
  });
  response.once('end', finish);
  response.once('error', finish);
}

/**
 * The message and reason of a Status. Any other response is quoted as the message, without a
 * reason.
 */
function readStatus(text: string): Readonly<{ message: string; reason: string }> {
  const status = jsonValue(text);
  const [message, reason] = [textAt(status, 'message'), textAt(status, 'reason')];
  return { message: (message ?? text).slice(0, messageCharactersMax), reason: (reason ?? '').slice(0, messageCharactersMax) };
}

function retryAfterMs({ headers }: IncomingMessage): number | undefined {
  const seconds = headers['retry-after'];
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}
