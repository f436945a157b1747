/**
 * The link between two hosts: a line each way, and the connections over both.
 *
 * An end breaks as if pings had failed: when nothing has arrived for idleTimeoutMs and no ping
 * could have been answered. No pings are sent, because they would be most of the tasks of a
 * thousand caches. Instead the ends are checked when a link is impaired.
 */
import type { Frame } from '../../src/frames/frame.js';
import { NetworkLine, type LineSettings } from './network-line.js';
import { NetworkPipe, type Parcel } from './network-pipe.js';
import { streamOf } from './seeded-random.js';
import { SimulatedEnd, type EndOptions } from './simulated-end.js';
import type { VirtualTime } from './virtual-time.js';

/** A frame that reaches the other end. `connection` counts from 1. */
export type Delivery = Readonly<{ from: string; to: string; connection: number; frame: Frame; bytes: number; atMs: number }>;

export type LinkParts = Readonly<{
  hosts: readonly [string, string];
  time: VirtualTime;
  seed: number;
  isDeaf: (host: string) => boolean;
  /** The clock of a host. */
  now: (host: string) => number;
  parcelsOf: (frame: Frame, way: Readonly<{ from: string; to: string }>) => readonly (Parcel & { kind: 'frame' })[];
  delivered: (delivery: Delivery) => void;
}>;

export type LinkOptions = EndOptions & Readonly<{ line: LineSettings }>;

type Via = { readonly host: string; readonly end: SimulatedEnd; readonly out: NetworkPipe };
/** `goneSinceMs`: when one of its hosts vanished. */
type Connection = { readonly vias: readonly [Via, Via]; goneSinceMs: number | undefined; open: number; readonly watched: Set<Via> };

export class NetworkLink {
  readonly hosts: readonly [string, string];
  readonly #parts: LinkParts;
  readonly #options: LinkOptions;
  readonly #lines: ReadonlyMap<string, NetworkLine>;
  readonly #connections = new Set<Connection>();
  #impairedSinceMs: number | undefined;

  constructor(parts: LinkParts, options: LinkOptions) {
    this.hosts = parts.hosts;
    this.#parts = parts;
    this.#options = options;
    const [one, other] = parts.hosts;
    const line = (from: string, to: string): [string, NetworkLine] => {
      const random = streamOf(parts.seed, `line from ${from} to ${to}`);
      return [from, new NetworkLine({ from, to, random }, options.line)];
    };
    this.#lines = new Map([line(one, other), line(other, one)]);
  }

  /** The time since which no ping could be answered. */
  get impairedSinceMs(): number | undefined {
    return this.#impairedSinceMs;
  }

  line(from: string): NetworkLine {
    const line = this.#lines.get(from);
    if (line === undefined) throw new Error(`${from} is at neither end of the link of ${this.hosts.join(' and ')}`);
    return line;
  }

  /** Returns the end of `from`, which connects, and the other end. */
  open(from: string, number: number): readonly [SimulatedEnd, SimulatedEnd] {
    const to = this.line(from).to;
    const connection: Connection = {
      vias: [this.#via(from, number, () => connection), this.#via(to, number, () => connection)],
      goneSinceMs: undefined,
      open: 2,
      watched: new Set(),
    };
    this.#connections.add(connection);
    return [connection.vias[0].end, connection.vias[1].end];
  }

  /** Must be called when a line or a host of this link may have changed. */
  look(): void {
    const isImpaired = [...this.#lines.values()].some(({ isBlocked }) => isBlocked) || this.hosts.some((host) => this.#parts.isDeaf(host));
    if (!isImpaired) this.#impairedSinceMs = undefined;
    else this.#impairedSinceMs ??= this.#parts.time.elapsedMs;
    for (const connection of this.#connections) {
      for (const via of connection.vias) {
        via.out.resume();
        if (isImpaired || connection.goneSinceMs !== undefined) this.#watch(connection, via);
      }
    }
  }

  /** The host resumes after a pause. */
  wake(host: string, stoodSinceMs: number): void {
    for (const { vias } of this.#connections) for (const via of vias) if (via.host === host) via.end.resume(stoodSinceMs);
  }

  cut(): void {
    for (const { vias } of this.#connections) for (const { end } of vias) end.terminate();
  }

  /** The host has died. */
  silence(host: string, isNoticed: boolean): void {
    for (const connection of this.#connections) {
      connection.goneSinceMs ??= isNoticed ? undefined : this.#parts.time.elapsedMs;
      for (const via of connection.vias) {
        if (via.host === host) via.end.silence(isNoticed);
        else if (!isNoticed) this.#watch(connection, via);
      }
    }
  }

  #via(host: string, number: number, connection: () => Connection): Via {
    const { time, isDeaf, now, parcelsOf, delivered } = this.#parts;
    const [line, back] = [this.line(host), this.line(this.line(host).to)];
    const other = (): Via => {
      const [one, two] = connection().vias;
      return one.host === host ? two : one;
    };
    const out = new NetworkPipe({
      time,
      line,
      isDeaf: () => isDeaf(line.to),
      arrive: (parcel) => other().end.arrive(parcel),
      moved: () => end.moved(),
    });
    const end = new SimulatedEnd(
      {
        peer: line.to,
        time,
        now: () => now(host),
        line: back,
        out: () => out,
        into: () => other().out,
        parcelsOf: (frame) => parcelsOf(frame, line),
        delivered: (frame, bytes) => delivered({ from: line.to, to: host, connection: number, frame, bytes, atMs: time.elapsedMs }),
        ended: () => this.#leave(connection()),
      },
      this.#options,
    );
    return { host, end, out };
  }

  /** Breaks the end once nothing has arrived for too long. */
  #watch(connection: Connection, via: Via): void {
    if (connection.watched.has(via) || !via.end.isOpen) return;
    const { time } = this.#parts;
    const sinceMs = connection.goneSinceMs ?? this.#impairedSinceMs;
    // A paused host does not count silence, because what arrives meanwhile is there when it
    // resumes.
    if (sinceMs === undefined || this.#parts.isDeaf(via.host)) return;
    const dueMs = Math.max(sinceMs, via.end.heardMs) + this.#options.idleTimeoutMs;
    if (dueMs <= time.elapsedMs) return via.end.terminate();
    connection.watched.add(via);
    time.after(dueMs - time.elapsedMs, () => {
      connection.watched.delete(via);
      this.#watch(connection, via);
    });
  }

  #leave(connection: Connection): void {
    connection.open -= 1;
    if (connection.open === 0) this.#connections.delete(connection);
  }
}
