/** A server at the URL of a cache that is no cache, or a broken one: each test says what it does with a request. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const run = promisify(execFile);

export class CacheStandIn {
  /** PEM, self-signed. */
  readonly certificate: string;
  readonly key: string;
  /** The requested paths, with their queries, in the order in which they came. */
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
    const folder = await mkdtemp(join(tmpdir(), 'strata-cache-stand-in-'));
    const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
    const names = ['-subj', '/CN=cache-stand-in', '-addext', 'subjectAltName=IP:127.0.0.1'];
    await run('openssl', ['req', '-x509', ...newKey, '-days', '30', ...names, '-out', certFile]);
    const [certificate, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    await rm(folder, { recursive: true });
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
