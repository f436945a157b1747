/**
 * A second cache beside a live kcp. The shards' own replication controllers write to the first
 * cache over HTTP; an agent for each shard pushes to the second over websockets. Both must hold the
 * same.
 *
 * The same means equal keys and equal JSON. The comparison leaves out resourceVersion and empty or
 * false members, which Go's types add or drop. It also leaves out the original version, which kcp's
 * controller writes only when it creates an object. An object that its shard is deleting may
 * differ: each cache keeps the last state sent to it. kcp's controller sends only the newest state
 * and leaves out others.
 */
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import { AgentProcess } from '../support/agent-process.js';
import type { KubeClient, KubeObject } from '../support/kube-client.js';
import { StrataProcess } from '../support/strata-process.js';
import type { LiveKcp } from './live-kcp.js';

const shards = [
  { shard: 'root', kubeconfig: '.kcp-0/admin.kubeconfig' },
  { shard: 'shard-1', kubeconfig: '.kcp-1/admin.kubeconfig' },
] as const;

/** Paths of the built-in types. */
const collections = kcpTypes
  .filter(({ resource }) => resource !== 'customresourcedefinitions')
  .map(({ group, resource, versions }) => `/services/cache/shards/*/clusters/*/apis/${group}/${versions[0]?.name}/${resource}`);

export class SecondCache {
  readonly cache: StrataProcess;
  readonly agents: readonly AgentProcess[];
  readonly #first: KubeClient;
  readonly #second: KubeClient;
  readonly #kcp: KubeClient;

  private constructor(
    cache: StrataProcess,
    agents: readonly AgentProcess[],
    { first, kcp }: Readonly<{ first: KubeClient; kcp: KubeClient }>,
  ) {
    this.cache = cache;
    this.agents = agents;
    this.#first = first;
    this.#second = cache.client();
    this.#kcp = kcp;
  }

  static async start(kcp: LiveKcp): Promise<SecondCache> {
    const cache = await StrataProcess.start();
    return new SecondCache(cache, await startAgents(kcp, [cache, cache]), { first: await kcp.cacheClient(), kcp: await kcp.client() });
  }

  /** Where the two caches differ; `[]` if nowhere. */
  async differences(): Promise<readonly string[]> {
    return differencesBetween(this.#first, this.#second, this.#kcp);
  }

  async objects(): Promise<number> {
    return objectsOf(this.#second);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.agents) await agent[Symbol.asyncDispose]();
    this.#first.close();
    this.#kcp.close();
    await this.cache[Symbol.asyncDispose]();
  }
}

/**
 * `caches`: the cache of each shard. `each`: agents per shard, all but one on standby. `flags`:
 * more flags of the agents.
 */
export async function startAgents(
  kcp: LiveKcp,
  caches: readonly [StrataProcess, StrataProcess],
  { each = 1, flags = [] }: Readonly<{ each?: number; flags?: readonly string[] }> = {},
): Promise<readonly AgentProcess[]> {
  const starting = shards.flatMap(({ shard, kubeconfig }, i) => {
    const options = { shard, kubeconfig: kcp.file(kubeconfig), context: 'shard-base', flags: ['--system-clusters=', ...flags] };
    return Array.from({ length: each }, () => AgentProcess.start(caches[i]!, options));
  });
  return Promise.all(starting);
}

/**
 * Where what agents pushed to `second` differs from what kcp's controllers wrote to `first`; `[]`
 * if nowhere. `kcp`: a client of kcp's front proxy.
 */
export async function differencesBetween(first: KubeClient, second: KubeClient, kcp: KubeClient): Promise<readonly string[]> {
  const declared = (await cachedResources(first)).map(collectionOf);
  const compared = { first, second, kcp, selectors: await cachedResources(second) };
  return (await Promise.all([...collections, ...new Set(declared)].map((collection) => differencesOf(collection, compared)))).flat();
}

export async function objectsOf(cache: KubeClient): Promise<number> {
  const declared = (await cachedResources(cache)).map(collectionOf);
  const lists = await Promise.all([...collections, ...new Set(declared)].map((collection) => cache.list(collection)));
  return lists.reduce((sum, { items }) => sum + items.length, 0);
}

/** The ClusterCachedResources with an identity hash: these declare a type. */
async function cachedResources(cache: KubeClient): Promise<readonly KubeObject[]> {
  const { items } = await cache.list('/services/cache/shards/*/clusters/*/apis/cache.kcp.io/v1alpha1/clustercachedresources');
  return items.filter(({ status }) => (status as { identityHash?: string } | undefined)?.identityHash);
}

function collectionOf({ spec, status }: KubeObject): string {
  const { group, version, resource } = spec as Readonly<Record<string, string>>;
  return `/services/cache/shards/*/clusters/*/apis/${group}/${version}/${resource}:${(status as { identityHash: string }).identityHash}`;
}

type Compared = Readonly<{ first: KubeClient; second: KubeClient; kcp: KubeClient; selectors: readonly KubeObject[] }>;

async function differencesOf(collection: string, { first, second, kcp, selectors }: Compared): Promise<readonly string[]> {
  const lists = await Promise.all([first.list(collection), second.list(collection)]);
  const [left, right] = lists.map(({ items }) => new Map(items.map((item) => [keyOf(item), item])));
  const type = collection.slice(collection.indexOf('/apis/'));
  const selecting = selectors.filter((each) => collectionOf(each) === collection);
  const found: string[] = [];
  for (const key of new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])) {
    const [written, pushed] = [left?.get(key), right?.get(key)];
    const [own, other] = [written, pushed].map((object) => object && comparable(object));
    if (own === other) continue;
    if (own !== undefined && other !== undefined && (await isBeingDeleted(kcp, type, key))) continue;
    // kcp's controller keeps copies of objects that are no longer selected, or that were deleted
    // with their logical cluster (docs/differences.md).
    if (written !== undefined && other === undefined && type.includes(':')) {
      const selectedBy = selecting.filter((each) => selects(each, written));
      if (selectedBy.length === 0 || (await isLeftBehind(kcp, type, key, selectedBy))) continue;
    }
    found.push(`${type} ${key}\n  controller: ${own ?? 'absent'}\n  agent:      ${other ?? 'absent'}`);
  }
  return found;
}

function selects(cached: KubeObject, { metadata }: KubeObject): boolean {
  const { labelSelector } = cached['spec'] as { labelSelector?: { matchLabels?: Readonly<Record<string, string>> } };
  const isOfCluster = cached.metadata.annotations?.['kcp.io/cluster'] === metadata.annotations?.['kcp.io/cluster'];
  const labels = metadata['labels'] as Readonly<Record<string, string>> | undefined;
  return isOfCluster && Object.entries(labelSelector?.matchLabels ?? {}).every(([label, value]) => labels?.[label] === value);
}

/** Whether kcp is deleting the object, which must be cluster-scoped. */
async function isBeingDeleted(kcp: KubeClient, type: string, key: string): Promise<boolean> {
  const [, cluster, name] = key.split('|');
  const { text } = await kcp.raw('GET', `/clusters/${cluster}${type}${name}`);
  return /"deletionTimestamp":/.test(text);
}

/**
 * Whether kcp has deleted the object, and is deleting each ClusterCachedResource that declares its
 * type.
 */
async function isLeftBehind(kcp: KubeClient, type: string, key: string, declaring: readonly KubeObject[]): Promise<boolean> {
  const [, cluster, name] = key.split('|');
  const { status } = await kcp.raw('GET', `/clusters/${cluster}${type.slice(0, type.indexOf(':'))}${name}`);
  if (status !== 404) return false;
  const cached = `/clusters/${cluster}/apis/cache.kcp.io/v1alpha1/clustercachedresources`;
  const answers = await Promise.all(declaring.map(({ metadata }) => kcp.raw('GET', `${cached}/${metadata.name}`)));
  return answers.every(({ text }) => /"deletionTimestamp":/.test(text));
}

function keyOf({ metadata }: KubeObject): string {
  const { 'kcp.io/shard': shard, 'kcp.io/cluster': cluster } = metadata.annotations ?? {};
  return `${shard}|${cluster}|${metadata.namespace ?? ''}/${metadata.name}`;
}

function comparable(object: KubeObject): string {
  const { resourceVersion: _, ...metadata } = object.metadata;
  const { 'cache.kcp.io/original-resource-version': __, ...annotations } = metadata.annotations ?? {};
  return JSON.stringify(sorted({ ...object, metadata: { ...metadata, annotations } }));
}

/** Sorts members by name and drops empty ones, at every depth. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .map(([name, member]) => [name, sorted(member)] as const)
    .filter(([, member]) => !isEmpty(member))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || value === false || (typeof value === 'object' && Object.keys(value).length === 0);
}
