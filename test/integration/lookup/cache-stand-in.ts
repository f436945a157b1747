/**
 * A server at the URL of a cache that is not a cache, or a broken one: each test decides its
 * answers.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { selfSigned } from '../../support/test-authority.js';

export class CacheStandIn {
  /** PEM, self-signed. */
  readonly certificate: string;
  readonly key: string;
  /** The requested paths with their queries, in order of arrival. */
  readonly requests: string[] = [];
  readonly sockets = new Set<Socket>();
  /** Connections accepted so far. */
  connections = 0;
  readonly #server: Server;

  private constructor(certificate: string, key: string, answer: (request: IncomingMessage, response: ServerResponse) => void) {
    this.certificate = certificate;
    this.key = key;
    this.#server = createServer({ cert: certificate, key }, (request, response) => {
      this.requests.push(request.url ?? '');
      answer(request, response);
    });
    this.#server.on('secureConnection', (socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  static async start(t: ExecutionContext, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<CacheStandIn> {
    const { certificate, key } = selfSigned(['127.0.0.1']);
    const standIn = new CacheStandIn(certificate, key, answer);
    standIn.#server.listen(0, '127.0.0.1');
    await once(standIn.#server, 'listening');
    t.teardown(() => standIn.#close());
    return standIn;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
