/**
 * A second cache beside a live kcp: the shards' own replication controllers write to the first one over HTTP, an agent for
 * each shard pushes to this one over websockets. Both must hold the same.
 *
 * The same means: the same keys, and the same JSON, without what means nothing across caches or was never written: resourceVersion, the
 * source's version that kcp's controller notes only at creation, and the empty or false members that Go's types add or drop. Of an object that its
 * shard is deleting, each cache keeps the last state before that which was sent to it: kcp's controller takes the newest alone, and leaves out others.
 */
import { kcpTypes } from '../../src/domain/catalogue-kcp.js';
import { AgentProcess } from '../support/agent-process.js';
import type { KubeClient, KubeObject } from '../support/kube-client.js';
import { StrataProcess } from '../support/strata-process.js';
import type { LiveKcp } from './live-kcp.js';

const shards = [
  { shard: 'root', kubeconfig: '.kcp-0/admin.kubeconfig' },
  { shard: 'shard-1', kubeconfig: '.kcp-1/admin.kubeconfig' },
] as const;

/** These are the built-in types; the declared types show what the controllers of kcp's ClusterCachedResources write. */
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
    const agents = await Promise.all(
      shards.map(({ shard, kubeconfig }) =>
        AgentProcess.start(cache, { shard, kubeconfig: kcp.file(kubeconfig), context: 'shard-base', flags: ['--system-clusters='] }),
      ),
    );
    return new SecondCache(cache, agents, { first: await kcp.cacheClient(), kcp: await kcp.client() });
  }

  /** Where the two differ; `[]` when nowhere. */
  async differences(): Promise<readonly string[]> {
    const found = await Promise.all(collections.map((collection) => this.#differencesOf(collection)));
    return found.flat();
  }

  async objects(): Promise<number> {
    const lists = await Promise.all(collections.map((collection) => this.#second.list(collection)));
    return lists.reduce((sum, { items }) => sum + items.length, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.agents) await agent[Symbol.asyncDispose]();
    this.#first.close();
    this.#kcp.close();
    await this.cache[Symbol.asyncDispose]();
  }

  async #differencesOf(collection: string): Promise<readonly string[]> {
    const [first, second] = await Promise.all([this.#first.list(collection), this.#second.list(collection)]);
    const [left, right] = [first, second].map(({ items }) => new Map(items.map((item) => [keyOf(item), comparable(item)])));
    const type = collection.slice(collection.indexOf('/apis/'));
    const found: string[] = [];
    for (const key of new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])) {
      const [own, other] = [left?.get(key), right?.get(key)];
      if (own === other) continue;
      if (own !== undefined && other !== undefined && (await this.#isBeingDeleted(type, key))) continue;
      found.push(`${type} ${key}\n  controller: ${own ?? 'absent'}\n  agent:      ${other ?? 'absent'}`);
    }
    return found;
  }

  /** Whether kcp is; of an object without a namespace. */
  async #isBeingDeleted(type: string, key: string): Promise<boolean> {
    const [, cluster, name] = key.split('|');
    const { text } = await this.#kcp.raw('GET', `/clusters/${cluster}${type}${name}`);
    return /"deletionTimestamp":/.test(text);
  }
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

/** Members in one order, without empty ones. */
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
