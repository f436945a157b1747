/**
 * Sends the same random requests to the etcd engine and to SQLite in memory. Finds answers that
 * differ, and objects, shards, slices or links that differ in the end. Not compared: revisions, the
 * order of what was sent together, and the path of a logical cluster whose objects name several.
 *
 * TEST_SEED=n repeats a failure, TEST_RUNS=n goes on longer.
 */
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { ShardState } from '../../../src/domain/claim.js';
import type { Push } from '../../../src/domain/push.js';
import type { PushLane, Store } from '../../../src/domain/store-port.js';
import { byText, comparable, timeless } from '../../contract/comparable.js';
import { engineStep, knownIn, type EngineStep } from '../../contract/engine-steps.js';
import { openMemory } from '../../contract/open-memory.js';
import { list, removalsEnd } from '../../contract/read-all.js';
import type { Engine } from '../../contract/store-contract.js';
import { aScope } from '../../support/objects.js';
import type { EtcdStore } from '../../../src/store/etcd/store.js';
import { openEtcdWith } from './etcd-engine.js';
import { etcdProgram } from './etcd-program.js';

const runs = Number(process.env['TEST_RUNS'] ?? 30);
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const stepsMax = 60;
/**
 * So long that the leader does nothing by itself between two steps: it would finish removals, which
 * SQLite does only at its start.
 */
const dutiesIntervalMs = 3_600_000;

class Asked {
  readonly engine: Engine;
  readonly #look: ((store: Store) => void) | undefined;
  #lane: PushLane;

  /**
   * `look` makes the store finish removals that a restart cut short, where it does not by itself.
   */
  constructor(engine: Engine, look?: (store: Store) => void) {
    this.engine = engine;
    this.#look = look;
    this.#lane = engine.store.writer.lane();
  }

  get store(): Store {
    return this.engine.store;
  }

  async take(step: EngineStep): Promise<unknown> {
    const { store } = this;
    switch (step.kind) {
      case 'push': {
        await this.#come();
        const known = knownIn(store);
        const outcomes = await this.#lane.push(step.pushes(known).filter((push) => isSpoken(push, known.shards)));
        return outcomes.map((outcome) => {
          if (outcome.kind === 'written') return { kind: 'written' };
          return outcome.kind === 'fenced' && outcome.holder !== undefined
            ? { ...outcome, holder: comparable(outcome.holder, store) }
            : outcome;
        });
      }
      case 'mutate':
        return (await store.writer.submit(await step.mutation(store))).kind;
      case 'compact':
        return undefined;
      case 'restart':
        this.#lane = (await this.engine.restart()).writer.lane();
        return removalsEnd(this.store, () => this.#look?.(this.store));
    }
  }

  /**
   * Lets each link and each holder of a shard come to this server, because the etcd engine accepts
   * pushes from no others.
   */
  async #come(): Promise<void> {
    const [shards, links] = [[...this.store.state.shards], [...this.store.state.links]];
    const comes = shards.flatMap(({ shard, process, term, via, plain, removed }): readonly Push[] =>
      via !== 'local' || plain || removed ? [] : [{ kind: 'acquire', shard, process, term, nowMs: 0 }],
    );
    await this.#lane.push([...comes, ...links.map(({ neighbour, cacheId }): Push => ({ kind: 'meet', neighbour, cacheId }))]);
  }

  async contents(): Promise<unknown> {
    const { store } = this;
    const objects = (await Promise.all(['apiexports', 'others'].map((resource) => list(store, aScope({ resource }))))).flat();
    return {
      objects: objects.map(({ key, body }) => `${JSON.stringify(key)} ${Buffer.from(body.bytes).toString()}`).toSorted(),
      shards: [...store.state.shards].map((state) => comparable(state, store)).toSorted(byText),
      // A server knows only changes since its own start.
      slices: [...store.state.slices].map((state) => ({ ...timeless(state), isUnchanged: undefined })).toSorted(byText),
      links: [...store.state.links].toSorted(byText),
    };
  }
}

/** False for a push by a pusher that does not hold the shard: no pusher sends one. */
function isSpoken(push: Push, shards: readonly ShardState[]): boolean {
  if (!('by' in push) || push.by.kind !== 'pusher') return true;
  const name = 'key' in push ? push.key.shard : push.slice.shard;
  const state = shards.find(({ shard }) => shard === name);
  return state?.via === 'local' && !state.plain;
}

test('the engines in memory and in etcd answer the same and hold the same, whatever they are asked', async (t) => {
  const found = await etcdProgram();
  if ('why' in found) {
    t.log(`skipped: ${found.why}`);
    t.pass();
    return;
  }
  t.timeout(300_000);
  t.log(`TEST_SEED=${seed}`);
  let outcomes = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(engineStep, { minLength: stepsMax / 2, maxLength: stepsMax, size: 'max' }), async (steps) => {
      const [ours, theirs] = [
        new Asked(await openEtcdWith({ dutiesIntervalMs })(t, {}), (store) => (store as EtcdStore).runDuties()),
        new Asked(await openMemory(t, {})),
      ];
      for (const [i, step] of steps.entries()) {
        t.deepEqual(await ours.take(step), await theirs.take(step), `step ${i}`);
        outcomes += 1;
      }
      t.deepEqual(await ours.contents(), await theirs.contents());
      await ours.store.close();
    }),
    { numRuns: runs, seed, endOnFailure: true },
  );
  t.log(`${runs} runs, ${outcomes} steps`);
  t.true(outcomes > runs);
});
