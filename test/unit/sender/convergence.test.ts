/**
 * Tests the promises C1 of sender.ts, V1 and V2 of window.ts against every failure: whatever
 * sources give and whatever happens to connections, caches and acknowledgements, the cache ends
 * with what the sources hold, and receives nothing forbidden on the way. TEST_SEED=n repeats a
 * failure.
 */
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseClusterName } from '../../../src/domain/cluster.js';
import type { Credit } from '../../../src/frames/frame.js';
import { exports, schemas, SenderRig } from '../../support/sender/a-sender.js';
import { FakeCache } from '../../support/sender/fake-cache.js';
import type { FakeSource } from '../../support/sender/fake-source.js';

const runs = Number(process.env['TEST_RUNS'] ?? 150);
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);

const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const slices = [exports, schemas] as const;

type Action =
  | Readonly<{ kind: 'put'; slice: number; name: string; size: number }>
  | Readonly<{ kind: 'delete'; slice: number; name: string }>
  | Readonly<{ kind: 'source begins again' | 'source breaks' | 'cache asks again' | 'withdraw and add'; slice: number }>
  | Readonly<{ kind: 'cluster begins again'; slice: number; cluster: string; missed: string | undefined }>
  | Readonly<{ kind: 'syncs have no end' | 'syncs have an end'; slice: number }>
  | Readonly<{ kind: 'commit'; frames: number; acknowledged: boolean }>
  | Readonly<{
      kind: 'drop' | 'forget' | 'stall' | 'flow' | 'settle' | 'catch up' | 'refuse connections' | 'refuse syncs' | 'shutdown';
    }>
  | Readonly<{ kind: 'credit'; credit: Credit }>
  | Readonly<{ kind: 'advance'; ms: number }>;

const slice = fc.nat(slices.length - 1);
const name = fc.constantFrom(...names);
const credit = fc.record({ mutations: fc.integer({ min: 1, max: 12 }), bytes: fc.integer({ min: 1, max: 800 }) });
const sliceEvent = fc.constantFrom(
  'source begins again' as const,
  'source breaks' as const,
  'cache asks again' as const,
  'withdraw and add' as const,
  'syncs have no end' as const,
  'syncs have an end' as const,
);

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('put' as const), slice, name, size: fc.integer({ min: 1, max: 300 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), slice, name }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('commit' as const), frames: fc.integer({ min: 1, max: 6 }), acknowledged: fc.constantFrom(true, true, false) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 2_000 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('catch up' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: sliceEvent, slice }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('cluster begins again' as const), slice, cluster: fc.constantFrom('acme', 'bold'), missed: fc.option(name, { nil: undefined }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('drop' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('forget' as const, 'stall' as const, 'flow' as const, 'refuse connections' as const, 'refuse syncs' as const, 'shutdown' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('credit' as const), credit }) },
); // prettier-ignore

class World {
  readonly caches = [new FakeCache('cache-a'), new FakeCache('cache-b')] as const;
  readonly sources: FakeSource[];
  readonly rig: SenderRig;
  #version = 0;

  constructor({ first, random, lastedMs }: Readonly<{ first: Credit; random: () => number; lastedMs: number }>) {
    const connect = (url: string) => this.#at(url).connect(url);
    this.rig = new SenderRig(undefined, {
      cache: this.caches[0],
      caches: this.caches,
      urls: ['wss://cache-a', 'wss://cache-b'],
      connect,
      random,
      batchMutationsMax: 4,
      lastedMs,
    });
    for (const cache of this.caches) cache.credit = first;
    this.sources = slices.map((each, index) => this.rig.source(each, ['a', 'b'], index === 0 ? {} : { after: slices[0] }));
    for (const source of this.sources) source.batchMax = 3;
  }

  /** The cache of the open connection, or else the one for the next connection. */
  get cache(): FakeCache {
    return this.caches.find(({ connection }) => connection?.isOpen === true) ?? this.caches[0];
  }

  async act(action: Action): Promise<void> {
    const { cache } = this;
    switch (action.kind) {
      case 'put':
        return this.#source(action.slice).put(action.name, `${this.#version++}`.padEnd(action.size, '.'));
      case 'delete':
        return this.#source(action.slice).delete(action.name);
      case 'source begins again':
        return this.#source(action.slice).resync();
      case 'cluster begins again':
        return this.#source(action.slice).resyncCluster(parseClusterName(action.cluster)!, action.missed);
      case 'source breaks':
        return this.#source(action.slice).fail();
      case 'syncs have no end':
        this.#source(action.slice).holdsEnd = true;
        return;
      case 'syncs have an end':
        return this.#source(action.slice).release();
      case 'cache asks again':
        return cache.resync(slices[action.slice] ?? exports);
      case 'withdraw and add': {
        const again = slices[action.slice] ?? exports;
        this.rig.sender.withdraw(again);
        return this.rig.sender.add(again, this.#source(action.slice));
      }
      case 'commit':
        return cache.commit(action.frames, { acknowledged: action.acknowledged });
      case 'drop':
        return cache.drop();
      case 'forget':
        return cache.forget();
      case 'stall':
        return cache.connection?.stall();
      case 'flow':
        return cache.connection?.flow();
      case 'refuse connections':
        cache.refusal = cache.refusal === undefined ? new Error('down') : undefined;
        return;
      case 'refuse syncs':
        cache.refusesBegin = !cache.refusesBegin;
        return;
      case 'shutdown':
        return cache.bye('shutdown', 1_000);
      case 'credit':
        // Applies to later connections, because an open one would first have to receive the new
        // limits.
        for (const each of this.caches) if (each.connection?.isOpen !== true) each.credit = action.credit;
        return;
      case 'settle':
        return this.rig.settle();
      case 'catch up':
        await this.rig.advance(2_000);
        return this.rig.commit(this.cache);
      case 'advance':
        return this.rig.advance(action.ms);
    }
  }

  /** Ends all failures; true once the cache holds what the sources hold. */
  async heal(): Promise<boolean> {
    const roundsMax = 300;
    for (const source of this.sources) source.release();
    for (const cache of this.caches) {
      cache.refusal = undefined;
      cache.refusesBegin = false;
    }
    for (let round = 0; round < roundsMax; round += 1) {
      this.cache.connection?.flow();
      await this.rig.settle();
      this.cache.commit();
      await this.rig.settle();
      if (this.isEqual()) return true;
      if (round % 10 === 9) await this.rig.advance(5_000);
    }
    return false;
  }

  isEqual(): boolean {
    const { slices: progress, unacknowledged } = this.rig.sender.state;
    if (unacknowledged.mutations > 0 || progress.some(({ phase }) => phase !== 'synced')) return false;
    return slices.every((each, index) => JSON.stringify(this.cache.held(each)) === JSON.stringify(this.#source(index).truth));
  }

  violations(): readonly string[] {
    return this.caches.flatMap(({ violations }) => violations);
  }

  #source(index: number): FakeSource {
    const source = this.sources[index];
    if (source === undefined) throw new Error(`there is no source ${index}`);
    return source;
  }

  #at(url: string): FakeCache {
    return url.endsWith('a') ? this.caches[0] : this.caches[1];
  }
}

test('whatever breaks, the cache ends with what the sources hold, within its credit and in order', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  let resumed = 0;

  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 60 }),
      credit,
      fc.double({ min: 0, max: 0.99, noNaN: true }),
      // With 0 every connection counts as long enough, so the sender tries the same cache again.
      fc.constantFrom(0, 0, 1_000),
      fc.boolean(),
      async (actions, first, share, lastedMs, begunWhole) => {
        const world = new World({ first, random: () => share, lastedMs });
        await world.rig.start();
        if (begunWhole) await world.heal();
        for (const each of actions) await world.act(each);
        const isEqual = await world.heal();
        resumed += world.rig.events('sender.connected').filter(({ slices, syncing }) => Number(syncing) < Number(slices)).length;
        world.rig.abort.abort();
        await world.rig.advance(5_000);
        await world.rig.ended;

        if (!isEqual) throw new Error(`the cache did not become equal: ${JSON.stringify(world.rig.sender.state)}`);
        if (world.violations().length > 0) throw new Error(world.violations().join('; '));
        if (world.sources.some(({ readings }) => readings > 0)) throw new Error('a source was left open');
        if (world.rig.clock.pending > 0) throw new Error('a timer was left behind');
      },
    ),
    { numRuns: runs, seed, includeErrorInReport: true },
  );

  t.log(`${runs} runs, ${resumed} connections resumed`);
  t.true(resumed > 0);
});
