/**
 * The differences between HTTP/1.1 and HTTP/2 for one request: when its body is complete, when its
 * answer is received, and how to end it.
 *
 * Over HTTP/2, Node emits `finish` on a response only together with `close`, and in several cases
 * no `close` at all (see connection.ts). So `Http2` listens to the stream, and the end of the
 * connection covers the remaining cases.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { badRequest, type Refusal } from '../domain/errors.js';

export type TransportEvents = Readonly<{
  /** The peer's end of the connection has received the whole answer. */
  taken: () => void;
  /** Nothing more can be sent or received. */
  gone: () => void;
}>;

export interface Transport {
  /** Whether the whole request has arrived. */
  readonly bodyIsIn: boolean;
  /** Whether writing must wait until the peer receives something. */
  readonly isFull: boolean;
  listen(events: TransportEvents): void;
  onceDrained(resume: () => void): void;
  /**
   * Ends an answered request whose body is unwanted: over HTTP/2 its stream, over HTTP/1.1 its
   * connection.
   */
  endBody(): void;
  /** Ends the answer in the middle, so that the peer knows it is incomplete. */
  cut(): void;
}

/**
 * Decides by the connection's protocol, because a request over HTTP/1.1 may claim version 0.9 or
 * 2.0, and Node believes it.
 */
export function isHttp2(request: unknown): request is Http2ServerRequest {
  return request instanceof Http2ServerRequest;
}

export function isOfHttp1({ httpVersionMajor }: IncomingMessage): boolean {
  return httpVersionMajor === 1;
}

/**
 * Why a request that Node accepts must be refused: Node may parse it differently than its sender
 * does. Go refuses such requests before any handler. Undefined if nothing is wrong.
 */
export function misfitOf(request: IncomingMessage): Refusal | undefined {
  const { headers, rawHeaders, httpVersionMinor } = request;
  if (!isHttp2(request)) {
    if (!isOfHttp1(request)) return badRequest('the request is not an HTTP/1 request');
    const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length;
    if (hosts > 1 || (hosts === 0 && httpVersionMinor > 0)) return badRequest('a request must have exactly one Host header');
    if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') return badRequest('unsupported transfer encoding');
  }
  if ((headers.expect || '100-continue').toLowerCase() === '100-continue') return undefined;
  return { reason: 'ExpectationFailed', message: 'the header Expect may have only the value 100-continue' };
}

export function hasBody(request: IncomingMessage): boolean {
  if (isHttp2(request)) return !(request.stream as unknown as ServerHttp2Stream).endAfterHeaders;
  const { headers } = request;
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

export function transportOf(request: IncomingMessage, response: ServerResponse): Transport {
  return isHttp2(request) ? new Http2(request, response as unknown as Http2ServerResponse) : new Http1(request, response);
}

class Http1 implements Transport {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #socket: Socket;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.#socket = request.socket;
  }

  get bodyIsIn(): boolean {
    return this.#request.complete;
  }

  get isFull(): boolean {
    return this.#response.writableNeedDrain;
  }

  listen({ taken, gone }: TransportEvents): void {
    const [request, response] = [this.#request, this.#response];
    const goneIfWhole = (): void => {
      if (response.closed && (request.complete || this.#socket.destroyed)) gone();
    };
    response.on('error', ignored);
    response.once('finish', taken);
    response.once('close', goneIfWhole);
    request.once('close', goneIfWhole);
  }

  onceDrained(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  endBody(): void {
    this.#socket.destroy();
  }

  cut(): void {
    this.#socket.destroy();
  }
}

class Http2 implements Transport {
  readonly #request: IncomingMessage;
  readonly #response: Http2ServerResponse;
  readonly #stream: ServerHttp2Stream;

  constructor(request: IncomingMessage, response: Http2ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.#stream = response.stream;
  }

  get bodyIsIn(): boolean {
    return this.#stream.endAfterHeaders || this.#request.complete;
  }

  get isFull(): boolean {
    return this.#stream.writableNeedDrain;
  }

  listen({ taken, gone }: TransportEvents): void {
    const stream = this.#stream;
    this.#response.on('error', ignored);
    stream.once('finish', taken);
    stream.once('close', gone);
    // If the peer has reset the stream, Node may delay the end until the remaining bytes are read.
    stream.once('aborted', () => {
      stream.destroy();
      gone();
    });
  }

  onceDrained(resume: () => void): void {
    this.#stream.once('drain', resume);
  }

  endBody(): void {
    this.#stream.close(constants.NGHTTP2_NO_ERROR);
  }

  /** Ends the stream with an error; otherwise the answer would look complete. */
  cut(): void {
    this.#stream.destroy(new Error('the answer was cut'));
  }
}

/**
 * When the next request arrives while the last answer is on its way, Node pauses an HTTP/1.1
 * connection. But Node's parser reads from TLS directly, and treats the rest of the same read as an
 * error (HPE_PAUSED). That loses a request, and a client cannot repeat every request. With a `data`
 * listener the bytes wait in the stream, which Node does pause.
 */
export function readThroughStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== 'h2') socket.on('data', () => {});
}

/** The error needs no answer, because the end that follows reports it. */
function ignored(): void {}
