/**
 * A TCP proxy on 127.0.0.1 that does to connections what networks do (F9): it delays bytes, holds
 * them up, swallows them, or resets the connection.
 *
 *   client ──▶ proxy ──▶ target   delay: bytes arrive later, in order; the sender is not slowed
 *        up ─▶     ◀─ down        narrow: so many bytes pass each second; the sender is slowed
 *                                 stall: nothing is read, so the sender stops; all of it arrives
 *                                        after healing
 *                                 blackhole: bytes and ends are swallowed, both ways or one;
 *                                        new connections lead nowhere
 *                                 refuse: new connections are reset, all or a share of them
 *                                 cut: both ends see a reset
 *                                 redirect: new connections go elsewhere, to several ports in turn
 *
 * Bound: a sender that is faster than the other end reads is stopped at `unsentBytesMax`.
 */
import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Way = 'up' | 'down';

type Pair = Readonly<{ client: Socket; target: Socket; flows: readonly Flow[] }>;

const unsentBytesMax = 1024 * 1024;

export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #network: Network = {
    delayMs: 0,
    bytesPerSecond: Infinity,
    isStalled: false,
    swallows: { up: false, down: false },
    passed: { up: 0, down: 0 },
  };
  #targetPorts: readonly number[];
  #connections = 0;
  #refuses: () => boolean = () => false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPorts = [targetPort];
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

  get connections(): number {
    return this.#connections;
  }

  get passed(): Readonly<Record<Way, number>> {
    return { ...this.#network.passed };
  }

  /** Delays later bytes by this long, each way. */
  delay(ms: number): void {
    this.#network.delayMs = ms;
  }

  /** Lets at most so many bytes pass each second, each way of each connection. */
  narrow(bytesPerSecond: number): void {
    this.#network.bytesPerSecond = bytesPerSecond;
  }

  stall(): void {
    this.#network.isStalled = true;
    this.#look();
  }

  /** Swallows both ways, or only the named one, which makes connections half-open. */
  blackhole(...ways: readonly Way[]): void {
    for (const way of ways.length === 0 ? (['up', 'down'] as const) : ways) this.#network.swallows[way] = true;
  }

  /** `chooses` decides for each new connection whether it is reset. */
  refuse(chooses: () => boolean = () => true): void {
    this.#refuses = chooses;
  }

  /** Lets new bytes pass again. Connections that lost bytes are reset, as TCP would do in time. */
  heal(): void {
    this.#network.delayMs = 0;
    this.#network.bytesPerSecond = Infinity;
    this.#network.isStalled = false;
    this.#network.swallows = { up: false, down: false };
    this.#refuses = () => false;
    for (const pair of this.#pairs) if (pair.flows.some(({ hasLost }) => hasLost)) reset(pair);
    this.#look();
  }

  cut(): void {
    for (const pair of this.#pairs) reset(pair);
  }

  /** Sends new connections to these ports, in turn. */
  redirect(...targetPorts: readonly number[]): void {
    this.#targetPorts = targetPorts;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #connect(client: Socket): void {
    this.#connections += 1;
    if (this.#refuses()) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    const port = this.#targetPorts[this.#connections % this.#targetPorts.length] ?? 0;
    const target = createConnection({ port, host: '127.0.0.1', allowHalfOpen: true });
    const flows = [new Flow(this.#network, client, target, 'up'), new Flow(this.#network, target, client, 'down')];
    const pair = { client, target, flows };
    this.#pairs.add(pair);
    for (const socket of [client, target]) {
      socket.on('close', () => {
        if (client.closed && target.closed) this.#pairs.delete(pair);
      });
    }
  }

  #look(): void {
    for (const { flows } of this.#pairs) for (const flow of flows) flow.look();
  }
}

type Network = {
  delayMs: number;
  bytesPerSecond: number;
  isStalled: boolean;
  swallows: Record<Way, boolean>;
  readonly passed: Record<Way, number>;
};

/** One way of one connection. Bytes under way keep their order, however the delay changes. */
class Flow {
  readonly #network: Network;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #way: Way;
  readonly #underWay: Readonly<{ dueMs: number; deliver: () => void }>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isFull = false;
  #isResting = false;
  hasLost = false;

  constructor(network: Network, from: Socket, to: Socket, way: Way) {
    this.#network = network;
    this.#from = from;
    this.#to = to;
    this.#way = way;
    from.setNoDelay(true);
    from.on('data', (bytes) => this.#pass(() => this.#write(bytes)));
    from.on('end', () => this.#pass(() => to.end()));
    from.on('error', () => {});
    from.on('close', () => this.#close());
    this.look();
  }

  look(): void {
    if (this.#network.isStalled || this.#isFull || this.#isResting) this.#from.pause();
    else this.#from.resume();
  }

  #write(bytes: Buffer): void {
    if (!this.#to.writable) return;
    this.#network.passed[this.#way] += bytes.length;
    this.#to.write(bytes);
    this.#rest((bytes.length / this.#network.bytesPerSecond) * 1_000);
    if (this.#isFull || this.#to.writableLength <= unsentBytesMax) return;
    this.#isFull = true;
    this.look();
    this.#to.once('drain', () => {
      this.#isFull = false;
      this.look();
    });
  }

  #rest(ms: number): void {
    if (ms < 1) return;
    this.#isResting = true;
    this.look();
    setTimeout(() => {
      this.#isResting = false;
      this.look();
    }, ms).unref();
  }

  #pass(deliver: () => void): void {
    if (this.#isSwallowed()) return;
    const { delayMs } = this.#network;
    if (delayMs === 0 && this.#underWay.length === 0) return deliver();
    this.#underWay.push({ dueMs: performance.now() + delayMs, deliver });
    this.#timer ??= setTimeout(() => this.#arrive(), delayMs);
  }

  #arrive(): void {
    this.#timer = undefined;
    for (let next = this.#underWay[0]; next !== undefined; next = this.#underWay[0]) {
      const leftMs = next.dueMs - performance.now();
      if (leftMs >= 1) {
        this.#timer = setTimeout(() => this.#arrive(), leftMs);
        return;
      }
      this.#underWay.shift();
      if (!this.#isSwallowed()) next.deliver();
    }
  }

  #isSwallowed(): boolean {
    const isSwallowed = this.#network.swallows[this.#way];
    this.hasLost ||= isSwallowed;
    return isSwallowed;
  }

  /** Passes the end on, unless this way is swallowed. */
  #close(): void {
    clearTimeout(this.#timer);
    if (!this.#isSwallowed()) this.#to.destroy();
  }
}

function reset({ client, target }: Pair): void {
  for (const socket of [client, target]) {
    // Node 20 never closes a socket that is reset while it is shutting down, and loops for ever
    // when it exits.
    if (socket.writableEnded) socket.destroy();
    else socket.resetAndDestroy();
  }
}
