/**
 * The server's end of the upgrade to a websocket. The client has been authorized already. If the
 * handshake is invalid, `SocketAcceptor` answers with an HTTP error, a Status as its body, and
 * closes the connection.
 */
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Clock } from '../domain/ports.js';
import { FrameSocket } from './frame-socket.js';
import { subprotocol, websocketLimits, type FrameSocketOptions } from './socket-options.js';

/** `turn`: as in FrameSocketParts, with the peer as argument. */
type AcceptorParts = Readonly<{ clock: Clock; turn?: (peer: string) => Promise<void> }>;

export class SocketAcceptor {
  readonly #server: WebSocketServer;
  readonly #parts: AcceptorParts;
  readonly #options: FrameSocketOptions;

  constructor(parts: AcceptorParts, options: FrameSocketOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#server = new WebSocketServer({
      ...websocketLimits(options),
      noServer: true,
      clientTracking: false,
      // `accept` has checked that the client offered this subprotocol.
      handleProtocols: () => subprotocol,
    });
    this.#server.on('wsClientError', (error, socket) => refuseBadRequest(socket, error.message));
  }

  /** Returns undefined, after sending an error, if the handshake is not valid. */
  async accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<FrameSocket | undefined> {
    if (!offersSubprotocol(request)) {
      refuseBadRequest(socket, `the client did not offer the websocket subprotocol ${subprotocol}`);
      return undefined;
    }
    const peer = `${request.socket.remoteAddress}:${request.socket.remotePort}`;
    const accepted: FrameSocket[] = [];
    // handleUpgrade calls back in this tick or never, because no asynchronous verification is
    // configured.
    this.#server.handleUpgrade(request, socket, head, (websocket: WebSocket) => {
      const { clock, turn } = this.#parts;
      accepted.push(new FrameSocket({ socket: websocket, peer, clock, turn: turn && (() => turn(peer)) }, this.#options));
    });
    return accepted[0];
  }
}

/**
 * Answers an upgrade with an error and closes the connection, even if the peer does not read the
 * answer. `json`: a Status.
 */
export function refuseUpgrade(socket: Duplex, httpCode: number, json: string, headers: Readonly<Record<string, string>> = {}): void {
  const lines = Object.entries({
    ...headers,
    connection: 'close',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(json)),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // The HTTP server has removed its error listener, and an unhandled error would end the process.
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${httpCode} ${STATUS_CODES[httpCode] ?? ''}\r\n${lines.join('')}\r\n${json}`);
}

function refuseBadRequest(socket: Duplex, message: string): void {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: 'BadRequest', code: 400 };
  refuseUpgrade(socket, status.code, JSON.stringify(status));
}

function offersSubprotocol({ headers }: IncomingMessage): boolean {
  const offered = headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((one) => one.trim() === subprotocol);
}
