/**
 * A plain writer that creates, changes, deletes and recreates objects of a few names and several
 * types, one of them declared by an object. It pauses only in `restFor`. Its cache holds the truth,
 * because a write that got no answer may have been committed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { KubeObject } from '../support/kube-client.js';
import { aClusterCachedResource, aPath } from '../support/objects.js';
import type { Random } from '../support/crash/random.js';
import type { TreeCache } from '../support/crash/process-tree.js';

const cluster = 'acme';
const declaredUnder = 'a1b2';
const restMs = 5;
const namesOfType = 12;

type Kind = Readonly<{ apiVersion: string; kind: string; place: Readonly<Record<string, string>> }>;

const kinds: readonly Kind[] = [
  aKind('apis.kcp.io', 'v1alpha2', 'apiexports', 'APIExport'),
  aKind('apis.kcp.io', 'v1alpha1', 'apiresourceschemas', 'APIResourceSchema'),
  aKind('tenancy.kcp.io', 'v1alpha1', 'workspacetypes', 'WorkspaceType'),
  aKind('machines.svm.io', 'v1', 'instances', 'Instance', declaredUnder),
];

/** Runs until the test ends. */
export async function aRecreatingWriter(t: ExecutionContext, cache: TreeCache, random: Random): Promise<RecreatingWriter> {
  const declaration = aPath({ cluster, group: 'cache.kcp.io', version: 'v1alpha1', resource: 'clustercachedresources' });
  await cache.client.create(declaration, aClusterCachedResource(declaredUnder));
  const writer = new RecreatingWriter(cache, random);
  const running = writer.run();
  t.teardown(async () => {
    writer.stop();
    await running;
  });
  return writer;
}

class RecreatingWriter {
  readonly #cache: TreeCache;
  readonly #random: Random;
  #turn = 0;
  #rests = false;
  #isStopped = false;

  constructor(cache: TreeCache, random: Random) {
    this.#cache = cache;
    this.#random = random;
  }

  /** How many writes were attempted. */
  get writes(): number {
    return this.#turn;
  }

  async restFor(ms: number): Promise<void> {
    this.#rests = true;
    await sleep(ms);
    this.#rests = false;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    for (; !this.#isStopped; await sleep(restMs)) if (!this.#rests) await this.#write().catch(() => {});
  }

  async #write(): Promise<void> {
    const { client } = this.#cache;
    const kind = kinds[this.#random.below(kinds.length)]!;
    const name = `n${this.#random.below(namesOfType)}`;
    this.#turn += 1;
    const held = await client.raw('GET', aPath({ ...kind.place, name }));
    if (held.status === 404) return void (await client.raw('POST', aPath(kind.place), { body: this.#object(kind, name) }));
    if (this.#random.chance(0.5)) return void (await client.raw('DELETE', aPath({ ...kind.place, name })));
    const { metadata } = JSON.parse(held.text) as KubeObject;
    await client.raw('PUT', aPath({ ...kind.place, name }), { body: this.#object(kind, name, metadata.resourceVersion) });
  }

  #object({ apiVersion, kind }: Kind, name: string, resourceVersion?: string): unknown {
    return { apiVersion, kind, metadata: { name, labels: { turn: `${this.#turn}` }, resourceVersion } };
  }
}

/** Where two caches differ in the objects of such a writer. */
export async function differencesBetween(here: TreeCache, there: TreeCache): Promise<readonly string[]> {
  const [held, other] = await Promise.all([turnsOf(here), turnsOf(there)]);
  return [...new Set([...held.keys(), ...other.keys()])]
    .filter((key) => held.get(key) !== other.get(key))
    .map((key) => `${key}: ${held.get(key) ?? 'gone'} at ${here.name}, ${other.get(key) ?? 'gone'} at ${there.name}`);
}

async function turnsOf({ client }: TreeCache): Promise<ReadonlyMap<string, string>> {
  const lists = await Promise.all(
    kinds.map(async ({ place }) => {
      // A type that is not declared yet has no objects.
      const { status, text } = await client.raw('GET', aPath(place));
      const { items = [] } = status === 200 ? (JSON.parse(text) as { items?: readonly KubeObject[] }) : {};
      return items.map(({ metadata: { name, labels } }) => [`${place['resource']} ${name}`, labels?.['turn'] ?? ''] as const);
    }),
  );
  return new Map(lists.flat());
}

function aKind(group: string, version: string, resource: string, kind: string, identity?: string): Kind {
  return {
    apiVersion: `${group}/${version}`,
    kind,
    place: { cluster, group, version, resource, ...(identity !== undefined && { identity }) },
  };
}
