/**
 * What HTTP/1.1 and HTTP/2 do differently about one request: how much of its body is in, when its answer has been taken, and how it is ended.
 *
 * Over HTTP/2 Node emits `finish` on a response only together with `close`, and no `close` at all in several cases (see ARCHITECTURE.md), so
 * its stream is listened to; whatever is missed there is made up for by the end of the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerResponse } from 'node:http2';

export type TransportEvents = Readonly<{
  /** The peer's side of the connection has taken the whole answer. */
  taken: () => void;
  /** Nothing more can be sent or received. */
  gone: () => void;
}>;

export interface Transport {
  /** Whether the request has come in whole. */
  readonly bodyIsIn: boolean;
  /** Whether more can be sent before some is taken. */
  readonly isFull: boolean;
  listen(events: TransportEvents): void;
  /** Calls back once, when more can be sent. */
  onceDrained(resume: () => void): void;
  /** Reads what is left of the body, and drops it. */
  dropBody(): void;
  /** Ends an answered request whose body is not wanted: HTTP/2 the stream, HTTP/1.1 the connection. */
  endBody(): void;
  /** Ends it half way, so that the peer knows it is not whole. */
  cut(): void;
}

export function transportOf(request: IncomingMessage, response: ServerResponse): Transport {
  return request.httpVersionMajor === 1 ? http1(request, response) : http2(request, response as unknown as Http2ServerResponse);
}

function http1(request: IncomingMessage, response: ServerResponse): Transport {
  const { socket } = request;
  return {
    get bodyIsIn() {
      return request.complete;
    },
    get isFull() {
      return response.writableNeedDrain;
    },
    listen({ taken, gone }) {
      const goneIfWhole = (): void => {
        if (response.closed && (request.complete || socket.destroyed)) gone();
      };
      response.on('error', () => {});
      response.once('finish', taken);
      response.once('close', goneIfWhole);
      request.once('close', goneIfWhole);
    },
    onceDrained: (resume) => void response.once('drain', resume),
    dropBody: () => void request.resume(),
    endBody: () => void socket.destroy(),
    cut: () => void socket.destroy(),
  };
}

function http2(request: IncomingMessage, response: Http2ServerResponse): Transport {
  const { stream } = response;
  return {
    get bodyIsIn() {
      return stream.endAfterHeaders || request.complete;
    },
    get isFull() {
      return stream.writableNeedDrain;
    },
    listen({ taken, gone }) {
      response.on('error', () => {});
      stream.once('finish', taken);
      // Of a stream that its peer has reset Node may wait for somebody to read what is left.
      stream.once('aborted', () => {
        stream.destroy();
        gone();
      });
      stream.once('close', gone);
    },
    onceDrained: (resume) => void stream.once('drain', resume),
    dropBody: () => void request.resume(),
    endBody: () => stream.close(constants.NGHTTP2_NO_ERROR),
    // With an error, or the peer would be told that the answer is whole.
    cut: () => void stream.destroy(new Error('the answer was cut')),
  };
}
