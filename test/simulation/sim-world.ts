/**
 * What all parties of one simulation share: time, the network, the seed, and what went wrong. The
 * same seed gives the same run.
 *
 * No run may have a fault: an error in the log, or a rejected promise of a cache. Warnings are
 * counted by event, because some of them must not happen in a run without tampering.
 */
import { createMetrics, type Metrics } from '../../src/diagnostics/metrics.js';
import type { Log } from '../../src/diagnostics/log.js';
import type { Commit } from '../../src/domain/change.js';
import { digestOf, type Digest } from '../../src/domain/slices/digest.js';
import type { Key } from '../../src/domain/key.js';
import type { Body } from '../../src/domain/object.js';
import type { Random } from '../support/crash/random.js';
import { Network, type NetworkOptions } from './network.js';
import { streamOf } from './seeded-random.js';
import { VirtualTime } from './virtual-time.js';

const faultsMax = 100;

/** How often a warning was logged, and its last fields. */
type Warning = Readonly<{ count: number; last: string }>;

export class SimWorld {
  readonly seed: number;
  readonly time = new VirtualTime();
  readonly network: Network;
  /** Shared by all caches. */
  readonly metrics: Metrics = createMetrics({ processMetrics: false });
  readonly #observers = new Set<(cache: string, commit: Commit) => void>();
  readonly #faults: string[] = [];
  readonly #digests = new WeakMap<Uint8Array, Readonly<{ text: string; digest: Digest }>>();
  readonly #warnings = new Map<string, Warning>();

  constructor(seed: number, options: Partial<NetworkOptions> = {}) {
    this.seed = seed;
    this.network = new Network({ time: this.time, seed }, options);
  }

  get faults(): readonly string[] {
    return this.#faults;
  }

  get warnings(): ReadonlyMap<string, Warning> {
    return this.#warnings;
  }

  /** Cached, because many caches hold the same bytes where frames cross by reference. */
  readonly digestOf = (key: Key, body: Body): Digest => {
    const text = `${key.cluster}|${key.namespace}/${key.name} ${body.version}`;
    const known = this.#digests.get(body.bytes);
    if (known?.text === text) return known.digest;
    const digest = digestOf(key, body);
    this.#digests.set(body.bytes, { text, digest });
    return digest;
  };

  random(name: string): Random {
    return streamOf(this.seed, name);
  }

  /** The log of one party. */
  log(name: string): Log {
    const log: Log = {
      debug: () => {},
      info: () => {},
      warn: (event, fields) => this.#warn(event, `${name}: ${JSON.stringify(fields)}`),
      error: (event, fields) => this.#fail(`${name}: ${event}`, fields?.['error']),
      child: () => log,
    };
    return log;
  }

  /** For a promise that no code awaits: its rejection is a fault. */
  own(name: string, promise: Promise<unknown>): void {
    promise.catch((error: unknown) => this.#fail(name, error));
  }

  /** Calls the observer at every commit, in the tick that publishes the commit. */
  observe(observer: (cache: string, commit: Commit) => void): void {
    this.#observers.add(observer);
  }

  published(cache: string, commit: Commit): void {
    for (const observer of this.#observers) observer(cache, commit);
  }

  /** Records a fault. */
  fault(what: string): void {
    if (this.#faults.length < faultsMax) this.#faults.push(`after ${this.time.elapsedMs} ms: ${what}`);
  }

  #warn(event: string, last: string): void {
    const { count } = this.#warnings.get(event) ?? { count: 0 };
    this.#warnings.set(event, { count: count + 1, last });
  }

  #fail(what: string, error: unknown): void {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.fault(`${what}: ${why}`);
  }
}
