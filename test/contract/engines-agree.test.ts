/**
 * Compares SQLite on a disk in memory, as simulations run it, with SQLite in files. Given the same
 * requests, both must decide, publish and keep the same. So what a simulation shows is true of a
 * server. TEST_SEED=n repeats a failure, TEST_RUNS=n goes on longer.
 */
import { rounds } from '../support/sizes.js';
import { test } from '../support/test.js';
import fc from 'fast-check';
import type { Change } from '../../src/domain/change.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { Outcome } from '../../src/domain/mutation.js';
import type { PushLane, Store } from '../../src/domain/store-port.js';
import type { Revision } from '../../src/domain/revision.js';
import type { Scope } from '../../src/domain/scope.js';
import { aScope, clusterName, shardName } from '../support/objects.js';
import { byText, comparable, timeless } from './comparable.js';
import { engineStep, knownIn, type EngineStep } from './engine-steps.js';
import { openMemory } from './open-memory.js';
import { openSqlite } from './open-sqlite.js';
import { changeText, listTexts, removalsEnd, touchedBehind } from './read-all.js';
import type { Engine } from './store-contract.js';

const runs = Number(process.env['TEST_RUNS'] ?? rounds(5));
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const stepsMax = 60;
const bounds = { changesMax: 8, tombstonesMax: 3 };

/** An engine, and what it has published during the present step. */
class Heard {
  readonly #engine: Engine;
  #lane: PushLane;
  #received: unknown[] = [];
  readonly #known = new Map<string, string>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#lane = this.#listen(engine.store);
  }

  get store(): Store {
    return this.#engine.store;
  }

  async take(step: EngineStep): Promise<readonly unknown[]> {
    this.#received = [];
    const outcome = await this.#outcomeOf(step);
    return [outcome, this.store.revisions.published, ...this.#received];
  }

  async #outcomeOf(step: EngineStep): Promise<unknown> {
    const { store } = this;
    switch (step.kind) {
      case 'push':
        return (await this.#lane.push(step.pushes(knownIn(store)))).map((outcome) =>
          outcome.kind === 'fenced' && outcome.holder !== undefined ? { ...outcome, holder: comparable(outcome.holder, store) } : outcome,
        );
      case 'mutate':
        return mutated(await store.writer.submit(await step.mutation(store)));
      case 'compact':
        await this.#engine.compact();
        return [
          store.revisions.compacted,
          Array.from({ length: store.revisions.published + 1 }, (_, after) => store.history.remembers(after)),
        ];
      case 'restart':
        this.#lane = this.#listen(await this.#engine.restart());
        return removalsEnd(this.store);
    }
  }

  /** An engine may publish an unchanged state again. */
  #isNews(state: Readonly<{ shard: string } | { slice: string }>): boolean {
    const name = 'slice' in state ? state.slice : state.shard;
    const text = JSON.stringify(state);
    if (this.#known.get(name) === text) return false;
    this.#known.set(name, text);
    return true;
  }

  #listen(store: Store): PushLane {
    store.state.follow(({ shards, slices }) => {
      const received = [...shards.map((state) => comparable(state, store)), ...slices.map(timeless)];
      this.#received.push(...received.toSorted(byText).filter((state) => this.#isNews(state)));
    });
    store.commits.subscribe(({ changes, movedPaths, swept }) => this.#received.push(changes.map(received), [...movedPaths], [...swept]));
    return store.writer.lane();
  }
}

function mutated(outcome: Outcome): unknown {
  return outcome.kind === 'written' ? [outcome.revision, outcome.object.revision] : outcome;
}

function received(change: Change): unknown {
  return [changeText(change), change.movedPath];
}

/** Keys that changed, as far back as the store remembers. */
async function touched(store: Store, scope: Scope): Promise<readonly string[]> {
  const after = Array.from({ length: store.revisions.published + 1 }, (_, revision) => revision).find((revision) =>
    store.history.remembers(revision),
  );
  return after === undefined ? [] : touchedBehind(store, scope, after);
}

function revisionsOf({ after, upTo }: Readonly<{ after: Revision; upTo: Revision }>): readonly Revision[] {
  return Array.from({ length: upTo - after + 1 }, (_, i) => after + i);
}

async function contents(store: Store): Promise<unknown> {
  const log: unknown[] = [];
  const range = { after: store.revisions.compacted, upTo: store.revisions.published };
  for await (const { changes } of store.history.everyChange(range, () => true)) log.push(...changes.map(received));
  const places = ['amber', 'birch'].flatMap((shard) =>
    ['acme', 'bold'].map((cluster) => ({ shard: shardName(shard), cluster: clusterName(cluster) })),
  );
  return {
    log,
    touched: await Promise.all(['apiexports', 'others'].map((resource) => touched(store, aScope({ resource })))),
    listed: await Promise.all(['apiexports', 'others'].map((resource) => listTexts(store, aScope({ resource })))),
    shards: [...store.state.shards].map((state) => comparable(state, store)).toSorted(byText),
    slices: [...store.state.slices].map(timeless).toSorted(byText),
    links: [...store.state.links].toSorted(byText),
    paths: await store.paths.pathsOf(places),
    formerPaths: await Promise.all(revisionsOf(range).map((at) => store.paths.pathsOf(places, at))),
    clusters: await Promise.all(
      ['root:x', 'root:y'].flatMap((path) => parseCanonicalPath(path) ?? []).map((path) => store.paths.clustersAt(path)),
    ),
  };
}

test('both engines decide, publish and keep the same, whatever they are asked', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  let written = 0;

  await fc.assert(
    fc.asyncProperty(fc.array(engineStep, { minLength: stepsMax / 2, maxLength: stepsMax, size: 'max' }), async (steps) => {
      const ours = new Heard(await openMemory(t, bounds));
      const theirs = new Heard(await openSqlite(0)(t, bounds));

      for (const step of steps) t.deepEqual(await ours.take(step), await theirs.take(step));
      t.deepEqual(await ours.take({ kind: 'compact' }), await theirs.take({ kind: 'compact' }));
      t.deepEqual(await contents(ours.store), await contents(theirs.store));

      written += ours.store.revisions.published;
      await theirs.store.close();
    }),
    { numRuns: runs, seed, endOnFailure: true },
  );

  t.log(`${runs} runs, ${written} revisions`);
  t.true(written > runs);
});
