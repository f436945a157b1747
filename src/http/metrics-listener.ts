/**
 * Answers /livez, /readyz, /healthz and /metrics over plain HTTP, to everybody who reaches the
 * address. For programs that have no other port.
 *
 * Bounds: `connectionsMax` connections, of which the oldest is closed for a new one, so that nobody
 * can keep a probe out. Headers of at most `headerBytesMax`, which must arrive within
 * `headersMsMax`. A connection that is silent for `silenceMsMax` is closed. So is one that
 * pipelines requests, because a thousand in one packet would make an agent render its metrics a
 * thousand times. No body is read.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6, type AddressInfo, type Socket } from 'node:net';
import { healthEndpoints, HealthLog, healthQueryOf, type Health } from '../diagnostics/health.js';
import type { Log } from '../diagnostics/log.js';
import type { RenderedMetrics } from '../diagnostics/metrics.js';
import { CacheError, explain } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';

export type MetricsListenerParts = Readonly<{ health: Health; metrics: RenderedMetrics; clock: Clock; log: Log }>;

/** `host`: '' for every interface. `flag`: named in the error if the address cannot be used. */
export type MetricsListenerOptions = Readonly<{ host: string; port: number; flag: string }>;

const connectionsMax = 32;
const headerBytesMax = 8 * 1024;
const headersMsMax = 5_000;
const silenceMsMax = 10_000;
const checkMs = 1_000;
const plainText = 'text/plain; charset=utf-8';

type Answer = Readonly<{ status: number; contentType: string; text: string }>;

export class MetricsListener {
  readonly #parts: MetricsListenerParts;
  readonly #healthLog: HealthLog;
  readonly #server: Server;
  /** The oldest first. */
  readonly #sockets = new Set<Socket>();
  /** Sockets with a request under way. */
  readonly #asking = new WeakSet<Socket>();

  private constructor(parts: MetricsListenerParts) {
    this.#parts = parts;
    this.#healthLog = new HealthLog(parts);
    this.#server = createServer(
      { maxHeaderSize: headerBytesMax, headersTimeout: headersMsMax, requestTimeout: silenceMsMax, connectionsCheckingInterval: checkMs },
      (request, response) => void this.#serve(request, response),
    );
    this.#server.timeout = silenceMsMax;
    this.#server.on('connection', (socket) => this.#accept(socket));
  }

  /** Throws a CacheError if the server cannot listen at that address. */
  static async open(parts: MetricsListenerParts, { host, port, flag }: MetricsListenerOptions): Promise<MetricsListener> {
    const listener = new MetricsListener(parts);
    listener.#server.listen({ port, ...(host === '' ? {} : { host }) });
    await once(listener.#server, 'listening').catch((cause: unknown) => {
      const at = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
      throw new CacheError(`cannot listen at ${at} for metrics (${explain(cause)}); choose another address with --${flag}`, { cause });
    });
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    const [oldest] = this.#sockets;
    if (this.#sockets.size >= connectionsMax) oldest?.destroy();
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  async #serve({ method = '', url = '/', headers, socket }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#asking.has(socket)) return void socket.destroy();
    this.#asking.add(socket);
    response.once('close', () => this.#asking.delete(socket));
    const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
    const isRead = method === 'GET' || method === 'HEAD';
    const { status, contentType, text } = isRead
      ? await this.#answer(url)
      : { status: 405, contentType: plainText, text: 'only GET and HEAD are answered here\n' };
    response.writeHead(status, {
      'content-type': contentType,
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-cache, private',
      'x-content-type-options': 'nosniff',
      ...(isRead ? {} : { allow: 'GET, HEAD' }),
      ...(hasBody || !isRead ? { connection: 'close' } : {}),
    });
    response.end(text);
  }

  async #answer(url: string): Promise<Answer> {
    const [path, ...query] = url.split('?');
    const { health, metrics } = this.#parts;
    if (path === '/metrics') return { status: 200, contentType: metrics.contentType, text: await metrics.render() };
    const endpoint = healthEndpoints.find((each) => path === `/${each}`);
    if (endpoint === undefined) return { status: 404, contentType: plainText, text: 'not found\n' };
    const report = health.report(endpoint, healthQueryOf(new URLSearchParams(query.join('?'))));
    this.#healthLog.failed(endpoint, report);
    return { status: report.status, contentType: plainText, text: report.text };
  }
}
