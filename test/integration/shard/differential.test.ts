/**
 * Random histories of a shard, through a model of kcp's controllers and through the agent: both
 * must end with the same objects.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import type { Clock } from '../../../src/domain/ports.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { aClusterCachedResource } from '../../support/objects.js';
import type { KubeObject } from '../../support/kube-client.js';
import { until } from '../../support/test-server.js';
import { anAgent, sliceOf, type AgentRig } from './an-agent.js';
import { ControllerModel, declaredType, markedType, type Declaring, type Local } from './controller-model.js';

const exports = 'apiexports.apis.kcp.io';
const cached = 'clustercachedresources.cache.kcp.io';
const types = [exports, markedType, declaredType];
const changed = [...types, declaredType];
const clusters = ['acme', 'beta', 'system:x'];
const apps = ['x', 'y'];
const declaringNames = ['instances', 'more'];
const namesEach = 2;
const steps = 150;
const settledMsMax = 5_000;

/**
 * Time runs this much faster, because edits wait for each other up to ten seconds. declared.test.ts
 * tests how long.
 */
const haste = 50;
const hastened: Clock = {
  now: () => systemClock.now() * haste,
  wallMs: () => systemClock.wallMs(),
  after: (delayMs, task) => systemClock.after(delayMs / haste, task),
};

/** A shard, both models of it, and an agent. */
class History {
  readonly rig: AgentRig;
  readonly kcp = new ControllerModel({ isExact: false });
  readonly exact = new ControllerModel({ isExact: true });
  readonly #random: Random;
  readonly #locals = new Map<string, Local>();
  readonly #declaring = new Map<string, Declaring>();
  #states = 0;

  constructor(rig: AgentRig, random: Random) {
    this.rig = rig;
    this.#random = random;
  }

  step(): void {
    const cluster = this.#any(clusters);
    const choice = this.#random.below(40);
    if (choice < 8 && cluster !== 'system:x') return this.#declareAnew(cluster, this.#any(declaringNames));
    if (choice === 8) return this.#empty(cluster);
    const type = this.#any(changed);
    const place = `${cluster}|${type[0]}${this.#random.below(namesEach)}`;
    const local = this.#locals.get(`${type} ${place}`);
    this.#change(type, place, local === undefined ? this.#written() : this.#after(local));
  }

  /** The states of the objects of a type that the agent has pushed. */
  pushed(type: string): Readonly<Record<string, number>> {
    const slice = type === declaredType ? sliceOf(type, 'hash') : sliceOf(type);
    if (!this.rig.slices.slices.includes(slice)) return {};
    const held = Object.entries(this.rig.slices.objects(slice));
    return Object.fromEntries(
      held.map(([place, { text }]) => [place.replace('||', '|'), (JSON.parse(text) as { spec: { state: number } }).spec.state]).toSorted(),
    );
  }

  /**
   * Resolves once the agent has what the exact model has. With `lasting`, objects that are being
   * deleted are not compared. For the declared type they never are: the agent may see a
   * ClusterCachedResource deleted and recreated in one edit, and then keeps what the model has
   * purged.
   */
  async settled(t: ExecutionContext, { lasting = false } = {}): Promise<void> {
    const kept = (type: string, all: Readonly<Record<string, number>>): Readonly<Record<string, number>> =>
      lasting || type === declaredType
        ? Object.fromEntries(Object.entries(all).filter(([place]) => this.exact.lasting(type).has(place)))
        : all;
    const [pushed, wanted] = [
      () => types.map((type) => kept(type, this.pushed(type))),
      () => types.map((type) => kept(type, this.exact.copies(type))),
    ];
    await until(() => JSON.stringify(pushed()) === JSON.stringify(wanted()), settledMsMax).catch(() => {});
    t.deepEqual(pushed(), wanted());
  }

  #any<T>(all: readonly T[]): T {
    return all[this.#random.below(all.length)]!;
  }

  #written(): Local {
    this.#states += 1;
    const labels = { app: this.#any(apps) };
    return {
      state: this.#states,
      labels,
      isMarked: this.#random.below(3) > 0,
      isDeleting: false,
      hasFinalizers: this.#random.below(3) > 0,
    };
  }

  /** Its next state; undefined: it is deleted. */
  #after(local: Local): Local | undefined {
    const choice = this.#random.below(6);
    if (local.isDeleting) return choice === 0 ? undefined : { ...local, state: (this.#states += 1) };
    if (choice === 0 && !local.hasFinalizers) return undefined;
    if (choice <= 2 && local.hasFinalizers) return { ...local, state: (this.#states += 1), isDeleting: true };
    return { ...this.#written(), hasFinalizers: local.hasFinalizers };
  }

  #change(type: string, place: string, local: Local | undefined): void {
    const key = `${type} ${place}`;
    if (local === undefined && !this.#locals.has(key)) return;
    const [cluster = '', name = ''] = place.split('|');
    if (local === undefined) {
      this.#locals.delete(key);
      this.rig.shard.store.delete(type, cluster, name);
    } else {
      this.#locals.set(key, local);
      this.rig.shard.store.put(type, cluster, objectOf(name, local));
    }
    for (const model of [this.kcp, this.exact]) model.change(type, place, local);
  }

  /**
   * Creates the ClusterCachedResource, changes its selector, requests its deletion, or deletes it.
   */
  #declareAnew(cluster: string, name: string): void {
    const former = this.#declaring.get(`${cluster}|${name}`);
    const written: Declaring = { selects: this.#any([...apps, undefined]), isDeleting: false };
    const next =
      former === undefined
        ? written
        : former.isDeleting
          ? undefined
          : this.#random.below(3) === 0
            ? { ...former, isDeleting: true }
            : written;
    this.#declare(cluster, name, next);
  }

  #declare(cluster: string, name: string, next: Declaring | undefined): void {
    if (next === undefined) {
      this.#declaring.delete(`${cluster}|${name}`);
      this.rig.shard.store.delete(cached, cluster, name);
    } else {
      this.#declaring.set(`${cluster}|${name}`, next);
      this.rig.shard.store.put(cached, cluster, declaringObject(name, next));
    }
    for (const model of [this.kcp, this.exact]) model.declare(cluster, name, next);
  }

  /** Deletes a logical cluster with everything in it. */
  #empty(cluster: string): void {
    for (const key of this.#locals.keys()) {
      const [type = '', place = ''] = key.split(' ');
      if (place.startsWith(`${cluster}|`)) this.#change(type, place, undefined);
    }
    for (const name of declaringNames) {
      const declaring = this.#declaring.get(`${cluster}|${name}`);
      if (declaring === undefined) continue;
      if (!declaring.isDeleting) this.#declare(cluster, name, { ...declaring, isDeleting: true });
      this.#declare(cluster, name, undefined);
    }
  }
}

function objectOf(name: string, { state, labels, isMarked, isDeleting, hasFinalizers }: Local): KubeObject {
  const annotations: Record<string, string> = isMarked ? { 'internal.kcp.io/replicate': 'true' } : {};
  const metadata = {
    name,
    labels,
    annotations,
    ...(hasFinalizers && { finalizers: ['a/b'] }),
    ...(isDeleting && { deletionTimestamp: '2026-11-23T12:00:00Z' }),
  };
  return { metadata, spec: { state } };
}

function declaringObject(name: string, { selects, isDeleting }: Declaring): KubeObject {
  const { metadata, spec, ...rest } = aClusterCachedResource('hash') as Record<string, Record<string, unknown>>;
  return {
    ...rest,
    metadata: {
      ...metadata,
      name,
      finalizers: ['cache.kcp.io/clustercachedresource'],
      ...(isDeleting && { deletionTimestamp: '2026-11-23T12:00:00Z' }),
    },
    spec: { ...spec, ...(selects !== undefined && { labelSelector: { matchLabels: { app: selects } } }) },
  } as KubeObject;
}

async function aHistory(t: ExecutionContext, seed: number): Promise<History> {
  t.timeout(60_000);
  t.log(`TEST_SEED=${seed}`);
  const rig = await anAgent(t, {
    clock: hastened,
    prepare: ({ store }) =>
      store.serve({ group: 'machines.svm.io', version: 'v1', resource: 'instances', kind: 'Instance', identity: 'hash' }),
  });
  await until(() => rig.slices.synced.size >= 18);
  return new History(rig, seeded(seed));
}

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000);

for (let run = 0; run < 4; run += 1) {
  test(`step by step, the agent pushes what the model has (${run})`, async (t) => {
    const history = await aHistory(t, seed + run);
    for (let step = 0; step < steps; step += 1) {
      history.step();
      await history.settled(t);
    }
    // Compares both models too; otherwise a deliberate difference could hide an accidental one.
    for (const type of [exports, markedType]) t.deepEqual(history.kcp.copies(type), history.exact.copies(type));
    for (const [place, state] of Object.entries(history.exact.copies(declaredType)))
      t.true((history.kcp.copies(declaredType)[place] ?? state) <= state, `${place}: kcp’s copy is no newer`);
  });

  test(`in bursts of changes, the agent ends with all that the model has and that is not being deleted (${run})`, async (t) => {
    const history = await aHistory(t, seed + 1_000 + run);
    for (let burst = 0; burst < 5; burst += 1) {
      for (let step = 0; step < steps; step += 1) history.step();
      await history.settled(t, { lasting: true });
    }
  });
}
