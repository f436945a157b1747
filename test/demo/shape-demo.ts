/**
 * Shows one of the shapes of examples/: it runs the caches as an operator would, two shards push,
 * and the demo measures the results and compares them with what the policies promise. Any
 * difference is thrown.
 *
 * Bounds: runMsMax in all, without the time that it stays up on request.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CacheProcess } from './cache-process.js';
import { dealObjects, type DealtObject } from './dealt-shards.js';
import type { ExampleCache } from './example-caches.js';
import { ExampleTree } from './example-tree.js';
import { untilAsExpected } from './held-objects.js';
import { PushedShard } from './pushed-shard.js';
import { recordedObjects } from './recorded-shards.js';
import type { Shape } from './shapes.js';
import { clipped, refusalsExplained } from './shown-status.js';
import { alignedRows } from '../../src/commands/terminal-text.js';

export type ShapeDemoOptions = Readonly<{ directory: string; stay: boolean; signal: AbortSignal }>;

const recording = 'kcp-2-shards.jsonl';
const shards = ['amber', 'birch'] as const;
const runMsMax = 120_000;
const settleMsMax = 30_000;
const rounds = 20;
const pollMs = 20;
const roundLabel = 'example.io/round';

export async function showShape(shape: Shape, { directory, stay, signal: interrupted }: ShapeDemoOptions): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`the demo took longer than ${runMsMax} ms`)), runMsMax);
  const signal = AbortSignal.any([interrupted, late.signal]);
  const open: { close(): Promise<void> }[] = [];
  try {
    say(`${shape.name}: ${shape.summary}.\n`);
    const tree = await ExampleTree.open({ shape: shape.name, shards, directory }, signal);
    open.push(tree);
    const shown = new ShownShape(shape, tree, { objects: dealObjects(await recordedObjects(recording)), signal });
    shown.drawTree();
    open.push(...(await shown.push()));
    await shown.compare();
    await shown.linksAre('up', tree.examples);
    await shown.untilComplete();
    await shown.status('The place of each cache in the tree, by its own status:', tree.caches);
    await shown.timeChanges();
    await shown.outage();
    say('\nEverything was right.');
    clearTimeout(timer);
    if (stay) await shown.stay(directory, interrupted);
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    clearTimeout(timer);
    for (const each of open.toReversed()) await each.close();
  }
}

class ShownShape {
  readonly #shape: Shape;
  readonly #tree: ExampleTree;
  readonly #objects: readonly DealtObject[];
  readonly #signal: AbortSignal;
  readonly #pushed = new Map<string, PushedShard>();
  #round = 0;

  constructor(shape: Shape, tree: ExampleTree, { objects, signal }: Readonly<{ objects: readonly DealtObject[]; signal: AbortSignal }>) {
    this.#shape = shape;
    this.#tree = tree;
    this.#objects = objects;
    this.#signal = signal;
  }

  drawTree(): void {
    say(`Run in an empty folder:\n${this.#tree.commands.map((command) => `  $ ${command}`).join('\n')}\n`);
    const rows = this.#tree.examples.map(({ name }) => {
      const pushing = shards.filter((shard) => this.#shape.origins[shard] === name);
      return [
        `  ${'   '.repeat(this.#tierOf(name))}${name}`,
        this.#tree.cache(name).url,
        pushing.length === 0 ? '' : `◀ ${pushing.join(' and ')}`,
      ];
    });
    say(alignedRows(rows));
  }

  async push(): Promise<readonly PushedShard[]> {
    say('\nThe objects are those that a real kcp had, dealt out to two shards and two tenants.');
    for (const shard of shards) {
      const plainWrites = this.#shape.origins[shard];
      const identity = await this.#tree.identity(shard);
      const options = { shard, url: this.#tree.cache(plainWrites).url, identity, objects: this.#objects };
      const pushed = await PushedShard.open(options, this.#signal);
      this.#pushed.set(shard, pushed);
      say(`Shard ${shard} has synced its ${pushed.objects} objects of ${pushed.types} types at ${plainWrites} in ${pushed.syncedMs} ms.`);
    }
    return [...this.#pushed.values()];
  }

  /**
   * Compares each cache with what it should hold, and shows which caches hold one object that some
   * must not see.
   */
  async compare(): Promise<void> {
    await this.#settled(this.#tree.caches);
    say('\nWhat each cache holds now, and what the policies hold back:');
    const count = (objects: readonly DealtObject[], shard: string): number => objects.filter((object) => object.shard === shard).length;
    const rows = this.#tree.caches.map(({ name }) => {
      const held = this.#expected(name);
      const kept = this.#objects.length - held.length;
      return [
        `  ${name}`,
        ...shards.map((shard) => `${count(held, shard)} of ${count(this.#objects, shard)}`),
        kept === 0 ? 'nothing' : `${kept} objects: ${typesOf(this.#objects.filter((object) => !held.includes(object)))}`,
      ];
    });
    say(alignedRows([['  CACHE', ...shards.map((shard) => `OF ${shard.toUpperCase()}`), 'KEPT FROM IT'], ...rows]));
    this.#followOne();
  }

  /** Throws unless the caches report this state of the links to their parents. */
  async linksAre(state: 'up' | 'down', examples: readonly ExampleCache[]): Promise<void> {
    for (const { name, parent } of examples) {
      const says = (await this.#tree.cache(name).followsParent()) ? 'up' : 'down';
      if (parent !== undefined && says !== state) throw new Error(`the cache ${name} says that its link to ${parent} is ${says}`);
    }
  }

  /**
   * A cache that has just joined the tree waits for its neighbours' reports, which they send every
   * few seconds.
   */
  async untilComplete(): Promise<void> {
    const deadline = performance.now() + settleMsMax;
    for (const cache of this.#tree.caches)
      while (!(await cache.isComplete())) {
        if (performance.now() > deadline) throw new Error(`the cache ${cache.name} says that it does not know the whole tree`);
        await pause(pollMs, undefined, { signal: this.#signal });
      }
  }

  async status(title: string, caches: readonly CacheProcess[]): Promise<void> {
    say(`\n${title}`);
    const isTerminal = process.stdout.isTTY === true;
    const shown: string[] = [];
    for (const { name } of caches) {
      const lines = await this.#tree.status(name);
      shown.push(...lines);
      say([`  ${name}`, ...lines.map((line) => `    ${clipped(line, isTerminal)}`)].join('\n'));
    }
    const explained = refusalsExplained(shown);
    if (explained !== undefined) say(`\n${explained}`);
  }

  /**
   * Times changes, one after another, from the pusher of amber until a watch at the far cache has
   * each.
   */
  async timeChanges(): Promise<void> {
    const { origins, far } = this.#shape;
    const changing = this.#changing;
    const collection = changing.collection;
    const { client } = this.#tree.cache(far);
    const { metadata } = await client.list(collection);
    const query = { resourceVersion: metadata.resourceVersion ?? '' };
    const stop = new AbortController();
    const events = client.watch(collection, { query, signal: AbortSignal.any([stop.signal, this.#signal]) });
    const took: number[] = [];
    for (let i = 0; i < rounds; i += 1) {
      const startedMs = performance.now();
      const round = this.#change();
      for (;;) {
        const { value, done } = await events.next();
        if (done === true) throw this.#signal.aborted ? this.#signal.reason : new Error(`the watch at ${far} has ended`);
        if (value.object.metadata.name === changing.object.metadata.name && value.object.metadata.labels?.[roundLabel] === round) break;
      }
      took.push(performance.now() - startedMs);
    }
    stop.abort();
    await events.return(undefined);
    const sorted = took.toSorted((left, right) => left - right);
    const [median, longest] = [sorted[Math.floor(rounds / 2)] ?? 0, sorted.at(-1) ?? 0];
    const path = this.#way(origins.amber, far);
    say(`\n${rounds} changes of one APIExport, from amber until a watch at ${far} saw them, by way of ${path.join(' ▸ ')}:`);
    say(
      `  over ${path.length === 2 ? 'one link' : `${path.length - 1} links`} in ${median.toFixed(0)} ms (median), ${longest.toFixed(0)} ms at most`,
    );
  }

  /**
   * Kills the root: the other caches continue. Changes made meanwhile must be everywhere soon after
   * the root is back.
   */
  async outage(): Promise<void> {
    const { root, caches } = this.#tree;
    const { origins, far } = this.#shape;
    const others = caches.filter((cache) => cache !== root);
    say(`\nThe cache ${root.name} is killed (kill -9).`);
    await root.kill();
    await this.#settled(others);
    say(`  Meanwhile all objects are served by ${others.map(({ name }) => name).join(', ')}.`);
    const round = this.#change();
    await this.#untilRound(origins.amber, round);
    say(`  A change of amber is durable at ${origins.amber}, and waits there.`);
    const children = this.#tree.examples.filter(({ parent }) => parent === root.name);
    await this.linksAre('down', children);
    await this.status(
      `  The status of its child, which is "not complete" until ${root.name} is back:`,
      children.slice(0, 1).map(({ name }) => this.#tree.cache(name)),
    );

    await root.start(this.#signal);
    const startedMs = performance.now();
    await this.#untilRound(far, round);
    say(`\nIt is started again: ${(performance.now() - startedMs).toFixed(0)} ms after it was ready, ${far} has that change.`);
    await this.#settled(caches);
    say('  Every cache holds what it should, as before.');
  }

  async stay(directory: string, interrupted: AbortSignal): Promise<void> {
    const { far } = this.#shape;
    const { collection } = this.#changing;
    say(`\nTry it, in ${directory}:`);
    for (const { name } of this.#tree.caches) say(`  ${this.#tree.statusCommand(name)}    # ${name}`);
    const url = `${this.#tree.cache(far).url}${collection.replace(/\/shards\/.*\/apis\//, '/shards/*/clusters/*/apis/')}`;
    say(`  curl --cacert strata-ca/ca.crt --cert admin.crt --key admin.key '${url}?limit=2'`);
    say('\nIt stays up until you press Ctrl-C.');
    if (!interrupted.aborted) await new Promise((resolve) => interrupted.addEventListener('abort', resolve, { once: true }));
  }

  /** An export of amber that every cache may hold. */
  get #changing(): DealtObject {
    const found = this.#objects.find(({ shard, isPublic }) => shard === 'amber' && isPublic);
    if (found === undefined) throw new Error('amber has no public export');
    return found;
  }

  #change(): string {
    const { object, ...rest } = this.#changing;
    this.#round += 1;
    const round = String(this.#round);
    const { metadata } = object;
    const changed = { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [roundLabel]: round } } };
    this.#pushed.get('amber')?.change({ ...rest, object: changed });
    return round;
  }

  async #untilRound(cache: string, round: string): Promise<void> {
    const { collection, object } = this.#changing;
    const deadline = performance.now() + settleMsMax;
    for (;;) {
      const { metadata } = await this.#tree.cache(cache).client.get(`${collection}/${object.metadata.name}`);
      if (metadata.labels?.[roundLabel] === round) return;
      if (performance.now() > deadline) throw new Error(`the change did not reach ${cache} within ${settleMsMax} ms`);
      await pause(pollMs, undefined, { signal: this.#signal });
    }
  }

  async #settled(caches: readonly CacheProcess[]): Promise<void> {
    const expected = (cache: string): readonly DealtObject[] => this.#expected(cache);
    await untilAsExpected(caches, { expected, objects: this.#objects, withinMs: settleMsMax, signal: this.#signal });
  }

  #expected(cache: string): readonly DealtObject[] {
    const holds = this.#shape.holds[cache];
    if (holds === undefined) throw new Error(`the demo does not know what ${cache} should hold`);
    return this.#objects.filter(holds);
  }

  /** Prefers an export, because users look for exports. */
  #followOne(): void {
    const names = this.#tree.caches.map(({ name }) => name);
    const isEverywhere = (object: DealtObject): boolean => names.every((name) => this.#expected(name).includes(object));
    const restricted = this.#objects.filter((object) => !isEverywhere(object));
    const one = restricted.find(({ type }) => type.startsWith('apiexports.')) ?? restricted[0];
    if (one === undefined) return;
    const [here, elsewhere] = [
      names.filter((name) => this.#expected(name).includes(one)),
      names.filter((name) => !this.#expected(name).includes(one)),
    ];
    say(
      `\nE.g. ${one.type} ${one.object.metadata.name}, of ${one.tenant ?? 'no tenant'}, is at ${here.join(', ')}, not at ${elsewhere.join(', ')}.`,
    );
  }

  #tierOf(name: string): number {
    return this.#upwards(name).length - 1;
  }

  #upwards(name: string): readonly string[] {
    const parent = this.#tree.examples.find((example) => example.name === name)?.parent;
    return [name, ...(parent === undefined ? [] : this.#upwards(parent))];
  }

  /** The caches from one cache up to the first common ancestor, and down to the other. */
  #way(from: string, to: string): readonly string[] {
    const [up, down] = [this.#upwards(from), this.#upwards(to)];
    const top = up.find((name) => down.includes(name)) ?? '';
    return [...up.slice(0, up.indexOf(top) + 1), ...down.slice(0, down.indexOf(top)).toReversed()];
  }
}

/** For example `clusterroles, clusterrolebindings`. */
function typesOf(objects: readonly DealtObject[]): string {
  return [...new Set(objects.map(({ type }) => type.split('.', 1)[0] ?? ''))].toSorted().join(', ');
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
