/** A sender that runs against caches in memory, on a clock that the test moves. */
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { LogFields } from '../../../src/diagnostics/log.js';
import type { Slice } from '../../../src/domain/slice.js';
import { defaultSenderBounds, type SenderBounds } from '../../../src/sender/sender-options.js';
import type { SenderEnd } from '../../../src/sender/sender-state.js';
import { Sender, type SenderParts } from '../../../src/sender/sender.js';
import { ManualClock } from '../store/manual-clock.js';
import { shardName } from '../objects.js';
import { FakeCache } from './fake-cache.js';
import { FakeSource } from './fake-source.js';

const amber = shardName('amber');
export const exports = aSlice('apiexports');
export const schemas = aSlice('apiresourceschemas');

export function aSlice(resource: string): Slice {
  return { shard: amber, resource: { group: 'apis.kcp.io', resource, identity: '' } };
}

type Logged = Readonly<{ event: string; fields: LogFields }>;

type RigOptions = Partial<SenderBounds> &
  Readonly<{
    cache?: FakeCache;
    /** All caches that it may connect to, including `cache`. */
    caches?: readonly FakeCache[];
    urls?: readonly string[];
    connect?: SenderParts['connect'];
    random?: () => number;
  }>;

export class SenderRig {
  readonly clock = new ManualClock();
  /** The first cache, for tests with only one. */
  readonly cache: FakeCache;
  readonly #caches: readonly FakeCache[];
  readonly sender: Sender;
  readonly logged: Logged[] = [];
  readonly abort = new AbortController();
  ended: Promise<SenderEnd> | undefined;

  constructor(
    t: Pick<ExecutionContext, 'teardown'> | undefined,
    { cache = new FakeCache(), caches = [cache], ...options }: RigOptions = {},
  ) {
    this.cache = cache;
    this.#caches = caches;
    const { connect = cache.connect, random = () => 0.5, urls = ['wss://one'], ...bounds } = options;
    const write = (event: string, fields: LogFields = {}): void => void this.logged.push({ event, fields });
    const log = { debug: write, info: write, warn: write, error: write, child: () => log };
    this.sender = new Sender(
      { turn, clock: this.clock, random, log, connect },
      { ...defaultSenderBounds, ...bounds, shard: amber, process: 'process-5', takesOver: false, urls, agent: 'test/1' },
    );
    t?.teardown(() => this.abort.abort());
  }

  source(slice: Slice, names: readonly string[] = [], options: Readonly<{ after?: Slice }> = {}): FakeSource {
    const source = new FakeSource();
    for (const name of names) source.put(name);
    this.sender.add(slice, source, options);
    return source;
  }

  async start(): Promise<void> {
    this.ended = this.sender.run(this.abort.signal);
    await this.settle();
  }

  /** Resolves when nothing more happens unless the clock advances. */
  async settle(): Promise<void> {
    const quietTurns = 6;
    for (let quiet = 0, before = -1; quiet < quietTurns; quiet += 1) {
      await turn();
      const now = this.logged.length + this.#caches.reduce((sum, { received }) => sum + received.length, 0);
      if (now !== before) quiet = 0;
      before = now;
    }
  }

  async advance(ms: number): Promise<void> {
    await this.settle();
    this.clock.advance(ms);
    await this.settle();
  }

  /** Commits what arrives at a cache until nothing more arrives. */
  async commit(cache = this.cache): Promise<void> {
    for (let before = -1; before !== cache.received.length;) {
      before = cache.received.length;
      cache.commit();
      await this.settle();
    }
  }

  events(name: string): readonly LogFields[] {
    return this.logged.filter(({ event }) => event === name).map(({ fields }) => fields);
  }
}
