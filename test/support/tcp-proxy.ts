/**
 * A TCP proxy on 127.0.0.1 that does to connections what networks do (F9): delays what passes, swallows it, or breaks it off.
 *
 *   client ──▶ proxy ──▶ target        delay: bytes arrive later, in order, and the sender is not held back
 *                                      blackhole: bytes and endings are swallowed, new connections are taken and lead nowhere
 *                                      cut: both ends see a reset
 */
import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

type Pair = Readonly<{ client: Socket; target: Socket }>;

export class TcpProxy {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #pairs = new Set<Pair>();
  #delayMs = 0;
  #swallows = false;
  #connections = 0;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    server.on('connection', (client) => this.#connect(client));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, targetPort);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections taken so far. */
  get connections(): number {
    return this.#connections;
  }

  /** From now on what passes takes so long, each way. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  blackhole(): void {
    this.#swallows = true;
  }

  /** What comes from now on passes again. Connections that lost something on the way are broken off: TCP would have, in time. */
  heal(): void {
    this.#delayMs = 0;
    if (this.#swallows) this.cut();
    this.#swallows = false;
  }

  cut(): void {
    for (const { client, target } of this.#pairs) {
      client.resetAndDestroy();
      target.resetAndDestroy();
    }
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #connect(client: Socket): void {
    this.#connections += 1;
    const target = createConnection({ port: this.#targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const pair = { client, target };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (bytes) => this.#pass(() => to.writable && to.write(bytes)));
      from.on('end', () => this.#pass(() => to.end()));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#pairs.delete(pair);
        if (!this.#swallows) to.destroy();
      });
    }
  }

  #pass(deliver: () => void): void {
    if (this.#swallows) return;
    if (this.#delayMs === 0) deliver();
    else setTimeout(() => this.#swallows || deliver(), this.#delayMs);
  }
}
