/**
 * A network of named hosts in virtual time. Between two hosts lies a link, a line each way, with
 * delay, jitter, loss and partitions. Connections over it behave like FrameSocket.
 *
 *   what happens          who notices, and when
 *   partition, halfOpen   both ends, at most idleTimeoutMs after the last arrival; if it heals
 *                         sooner, nobody notices and everything arrives
 *   cut                   both ends at once: 1006
 *   crash                 the peers, once the reset by the dead process's system reaches them;
 *                         nobody on the host itself
 *   vanish                the peers, after idleTimeoutMs, because the power is gone
 *   freeze                the peers, after idleTimeoutMs; the host, when it wakes
 *   stall                 nobody, if it ends within idleTimeoutMs: everything arrives then
 *
 * N1 A frame is encoded and decoded on its way, unless the options say otherwise.
 * N2 The same seed gives the same delays, link by link, whatever other links do.
 * Bounds: as in FrameSocket for unsent bytes, and windowBytes for bytes on the way.
 */
import { CacheError } from '../../src/domain/errors.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { Frame } from '../../src/frames/frame.js';
import { writeFrame } from '../../src/frames/frame-codec.js';
import { frameSize } from './frame-size.js';
import { NetworkLink, type Delivery } from './network-link.js';
import type { LineSettings, NetworkLine } from './network-line.js';
import { defaultLine } from './network-line.js';
import type { Parcel } from './network-pipe.js';
import type { EndOptions } from './simulated-end.js';
import type { VirtualTime } from './virtual-time.js';

export type NetworkOptions = EndOptions &
  Readonly<{
    line: LineSettings;
    connectTimeoutMs: number;
    /** Round trips for TCP, TLS and the upgrade to a websocket. */
    connectRoundTrips: number;
    /**
     * 'references': frames cross without being encoded, and their sizes are added up; for very
     * large trees.
     */
    frames: 'bytes' | 'references';
  }>;

const defaultNetwork: NetworkOptions = Object.freeze({
  line: defaultLine,
  idleTimeoutMs: 20_000,
  connectTimeoutMs: 10_000,
  connectRoundTrips: 3,
  frames: 'bytes',
  bufferedBytesLow: 1024 * 1024,
  bufferedBytesMax: 64 * 1024 * 1024,
  closeGraceMs: 2_000,
});

/** A fault: returns the frames that arrive instead of one frame. */
export type Tampering = (frame: Frame, way: Readonly<{ from: string; to: string }>) => readonly Frame[];

type Accept = (connection: FrameConnection, from: string) => void;

type Host = {
  readonly name: string;
  accept: Accept | undefined;
  /** The start of its pause. */
  deafSinceMs: number | undefined;
  now: () => number;
  life: number;
  readonly links: Set<NetworkLink>;
};

export class Network {
  readonly #time: VirtualTime;
  readonly #seed: number;
  readonly #options: NetworkOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #links = new Map<string, NetworkLink>();
  readonly #observers = new Set<(delivery: Delivery) => void>();
  #tampering: Tampering | undefined;
  #connections = 0;

  constructor({ time, seed }: Readonly<{ time: VirtualTime; seed: number }>, options: Partial<NetworkOptions> = {}) {
    this.#time = time;
    this.#seed = seed;
    this.#options = { ...defaultNetwork, ...options };
  }

  /** `now`: the host's clock. */
  listen(name: string, accept: Accept, now = (): number => this.#time.now()): void {
    const host = this.#host(name);
    host.accept = accept;
    host.now = now;
  }

  /** The host refuses new connections; open ones stay. */
  unlisten(name: string): void {
    this.#host(name).accept = undefined;
  }

  /**
   * Rejects, like connectSocket, if the other end does not listen or cannot be reached. Never
   * settles once `from` has crashed.
   */
  connect(from: string, to: string, signal: AbortSignal): Promise<FrameConnection> {
    const { connectTimeoutMs, connectRoundTrips } = this.#options;
    const [here, there] = [this.#host(from), this.#host(to)];
    const link = this.link(from, to);
    const life = here.life;
    const wasClear = this.#isClear(link);
    const tripsMs = connectRoundTrips * (link.line(from).drawDelayMs() + link.line(to).drawDelayMs());

    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        cancel();
        signal.removeEventListener('abort', abort);
        if (here.life === life) reject(new CacheError(`cannot connect to ${to}: ${why}`));
      };
      const abort = (): void => fail('the attempt was canceled');
      const answer = (): void => {
        if (here.life !== life) return fail('gone');
        if (!wasClear || !this.#isClear(link)) {
          cancel = this.#time.after(Math.max(0, connectTimeoutMs - tripsMs), () =>
            fail(`it did not answer within ${connectTimeoutMs / 1000} s`),
          );
          return;
        }
        if (there.accept === undefined) return fail('nobody listens');
        signal.removeEventListener('abort', abort);
        this.#connections += 1;
        const [own, others] = link.open(from, this.#connections);
        there.accept(others, from);
        resolve(own);
      };
      let cancel = this.#time.after(Math.min(tripsMs, connectTimeoutMs), answer);
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Sets both directions. */
  set(one: string, other: string, settings: Partial<LineSettings>): void {
    for (const from of [one, other]) this.setLine(from, from === one ? other : one, settings);
  }

  setLine(from: string, to: string, settings: Partial<LineSettings>): void {
    const line = this.#line(from, to);
    line.settings = { ...line.settings, ...settings };
  }

  partition(one: string, other: string): void {
    this.halfOpen(one, other);
    this.halfOpen(other, one);
  }

  /** Nothing arrives at `to` from `from`; the other direction works. */
  halfOpen(from: string, to: string): void {
    this.#line(from, to).isCut = true;
    this.link(from, to).look();
  }

  /**
   * Nothing arrives at `to` from `from` for so long. Frames sent meanwhile arrive afterwards, if
   * neither end has given up.
   */
  stall(from: string, to: string, forMs: number): void {
    const line = this.#line(from, to);
    const stall = Symbol(from);
    line.stalls.add(stall);
    this.link(from, to).look();
    this.#time.after(forMs, () => {
      if (line.stalls.delete(stall)) this.link(from, to).look();
    });
  }

  heal(one: string, other: string): void {
    for (const line of [this.#line(one, other), this.#line(other, one)]) {
      line.isCut = false;
      line.stalls.clear();
    }
    this.link(one, other).look();
  }

  /** Heals every link and wakes every host. */
  healAll(): void {
    for (const { deafSinceMs, name } of this.#hosts.values()) if (deafSinceMs !== undefined) this.thaw(name);
    for (const link of this.#links.values()) this.heal(...link.hosts);
  }

  /** Both ends of every connection between the two hosts see a break at once. */
  cut(one: string, other: string): void {
    this.link(one, other).cut();
  }

  crash(name: string): void {
    this.#end(name, true);
  }

  vanish(name: string): void {
    this.#end(name, false);
  }

  /** Nothing reaches the host until it thaws. process-life.ts stops the host's own time. */
  freeze(name: string): void {
    this.#setDeaf(name, true);
  }

  thaw(name: string): void {
    this.#setDeaf(name, false);
  }

  /** What has arrived at `to` from `from`, on all connections between them. */
  traffic(from: string, to: string): NetworkLine['traffic'] {
    return this.#line(from, to).traffic;
  }

  /**
   * Calls the observer with every frame that reaches the other end. The result cancels the
   * observer.
   */
  observe(observer: (delivery: Delivery) => void): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  /** Undefined ends the tampering. */
  tamper(tampering: Tampering | undefined): void {
    this.#tampering = tampering;
  }

  link(one: string, other: string): NetworkLink {
    if (one === other) throw new Error(`${one} has no link to itself`);
    const text = [one, other].toSorted().join(' ');
    const known = this.#links.get(text);
    if (known !== undefined) return known;
    const made = new NetworkLink(
      {
        hosts: [one, other],
        time: this.#time,
        seed: this.#seed,
        isDeaf: (name) => this.#host(name).deafSinceMs !== undefined,
        now: (name) => this.#host(name).now(),
        parcelsOf: (frame, way) => this.#parcelsOf(frame, way),
        delivered: (delivery) => this.#observers.forEach((observer) => observer(delivery)),
      },
      this.#options,
    );
    this.#links.set(text, made);
    for (const name of [one, other]) this.#host(name).links.add(made);
    made.look();
    return made;
  }

  #line(from: string, to: string): NetworkLine {
    return this.link(from, to).line(from);
  }

  #host(name: string): Host {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const made: Host = { name, accept: undefined, deafSinceMs: undefined, now: () => this.#time.now(), life: 1, links: new Set() };
    this.#hosts.set(name, made);
    return made;
  }

  #isClear(link: NetworkLink): boolean {
    return link.impairedSinceMs === undefined;
  }

  #end(name: string, isNoticed: boolean): void {
    const host = this.#host(name);
    host.life += 1;
    host.accept = undefined;
    for (const link of host.links) link.silence(name, isNoticed);
    this.#setDeaf(name, false);
  }

  #setDeaf(name: string, isDeaf: boolean): void {
    const host = this.#host(name);
    if ((host.deafSinceMs !== undefined) === isDeaf) return;
    const stoodSinceMs = host.deafSinceMs;
    host.deafSinceMs = isDeaf ? this.#time.elapsedMs : undefined;
    for (const link of host.links) link.look();
    if (stoodSinceMs !== undefined) for (const link of host.links) link.wake(name, stoodSinceMs);
  }

  #parcelsOf(frame: Frame, way: Readonly<{ from: string; to: string }>): readonly (Parcel & { kind: 'frame' })[] {
    if (this.#tampering === undefined) return [this.#parcelOf(frame)];
    return this.#tampering(frame, way).map((sent) => this.#parcelOf(sent));
  }

  #parcelOf(frame: Frame): Parcel & { kind: 'frame' } {
    if (this.#options.frames === 'references') return { kind: 'frame', frame, bytes: undefined, size: frameSize(frame) };
    const bytes = writeFrame(frame);
    return { kind: 'frame', frame, bytes, size: bytes.length };
  }
}
