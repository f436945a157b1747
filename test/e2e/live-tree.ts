/**
 * Three caches for a live kcp of two shards: a leaf for each shard, and a parent that joins them.
 * Policies let every object cross both ways. Each leaf reaches its parent through a proxy that a
 * test can point at another parent.
 *
 *           parent   another
 *          ▲▼    ▲▼
 *       leaf 0   leaf 1
 *         ▲        ▲        each shard uses only its own leaf, over plain HTTP
 *       root    shard-1
 *
 * All three must hold the same bytes, except resourceVersions, which each cache gives itself.
 */
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { StatusReport } from '../../src/domain/status.js';
import { freeze, thaw } from '../support/freeze.js';
import type { KubeClient, KubeObject } from '../support/kube-client.js';
import { StrataProcess } from '../support/strata-process.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/test-server.js';
import { writeCacheKubeconfig } from './cache-kubeconfig.js';

/** By shard number. */
const leafNames = ['east', 'west'] as const;

const everything = "[{types: ['*']}]";
const parentConfig = `children:\n  '*': {accept: [{shards: ['*']}], offer: ${everything}}\n`;
const leafConfig = `parent:\n  forward: ${everything}\n  follow: ${everything}\n`;

/** Both ends compare digests this often, so that the test sees every difference. */
const digests = '--link-digest-interval=2s';

const collections = kcpTypes.map(
  ({ group, resource, versions }) => `/services/cache/shards/*/clusters/*/apis/${group}/${versions[0]?.name}/${resource}`,
);

export class LiveTree {
  readonly parent: StrataProcess;
  /** Another parent, to which a leaf may move. */
  readonly another: StrataProcess;
  readonly leaves: readonly StrataProcess[];
  readonly #uplinks: readonly TcpProxy[];

  private constructor(parents: readonly [StrataProcess, StrataProcess], leaves: readonly StrataProcess[], uplinks: readonly TcpProxy[]) {
    [this.parent, this.another] = parents;
    this.leaves = leaves;
    this.#uplinks = uplinks;
  }

  static async start(): Promise<LiveTree> {
    const parent = await StrataProcess.start({ flags: [digests], config: parentConfig });
    const another = await StrataProcess.start({ flags: [digests], config: parentConfig, authority: parent.authority });
    const [leaves, uplinks]: [StrataProcess[], TcpProxy[]] = [[], []];
    const tree = new LiveTree([parent, another], leaves, uplinks);
    const trusted = join(parent.folder, 'parents.crt');
    await writeFile(trusted, `${parent.certificate}\n${another.certificate}`);
    try {
      for (const name of leafNames) {
        const uplink = await TcpProxy.start(parent.port);
        uplinks.push(uplink);
        leaves.push(await startLeaf(parent, { name, url: `https://127.0.0.1:${uplink.port}`, trusted }));
      }
      return tree;
    } catch (error) {
      await tree[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Points a leaf's proxy at this parent. */
  lead(leaf: number, to: StrataProcess): void {
    this.#uplinks[leaf]?.redirect(to.port);
    this.#uplinks[leaf]?.cut();
  }

  /** Resolves once the leaf has connected to this parent and sent everything. */
  async arrived(leaf: number, at: StrataProcess): Promise<void> {
    const isThere = async (): Promise<boolean> =>
      (await statusOf(at)).tree?.children.some(({ name, connection }) => name === leafNames[leaf] && connection.kind === 'connected') ===
      true;
    await until(isThere, 30_000);
  }

  /** Copies a leaf's data as a volume snapshot would: the state of one moment. */
  async snapshot(leaf: number): Promise<string> {
    const { folder, dataFolder, pid } = this.#leaf(leaf);
    const copy = join(folder, 'snapshot');
    await freeze(pid);
    try {
      await cp(dataFolder, copy, { recursive: true });
    } finally {
      thaw(pid);
    }
    return copy;
  }

  /** Starts a leaf on that snapshot, as if its machine had been lost. */
  async restore(leaf: number, copy: string): Promise<void> {
    const cache = this.#leaf(leaf);
    await cache.kill();
    await rm(cache.dataFolder, { recursive: true });
    await cp(copy, cache.dataFolder, { recursive: true });
    await cache.resume();
  }

  #leaf(leaf: number): StrataProcess {
    const cache = this.leaves[leaf];
    if (cache === undefined) throw new Error(`there is no leaf ${leaf}`);
    return cache;
  }

  /** Kubeconfigs of the leaves, for kcp. */
  async kubeconfigs(): Promise<readonly string[]> {
    return Promise.all(this.leaves.map(kubeconfigOf));
  }

  /**
   * The number and total bytes of the objects of each slice in a cache, including types that kcp's
   * objects declare.
   */
  async slices(cache: StrataProcess): Promise<ReadonlyMap<string, string>> {
    const { shards } = await statusOf(cache);
    const held = shards.flatMap(({ shard, slices }) => slices.filter(({ objects }) => objects > 0).map((slice) => ({ shard, ...slice })));
    return new Map(
      held.map(({ shard, group, resource, identity, objects, bytes }) => [
        `${shard}|${group}/${resource}:${identity}`,
        `${objects} objects, ${bytes} bytes`,
      ]),
    );
  }

  /** Where the leaves differ from the parent; `[]` if nowhere. */
  async differences(): Promise<readonly string[]> {
    const [above, ...below] = await Promise.all(
      [this.parent, ...this.leaves].map(async (cache) => [await this.slices(cache), await contents(cache)]),
    );
    return below.flatMap((held, leaf) =>
      held.flatMap((own, i) => differencesOf(own, above?.[i] ?? new Map()).map((difference) => `${leafNames[leaf]}: ${difference}`)),
    );
  }

  /** The names of the APIExports that the parent has of this workspace, sorted. */
  async exportsOf({ shard, cluster }: Readonly<{ shard: string; cluster: string }>): Promise<readonly string[]> {
    const { items } = await clientOf(this.parent).list(
      `/services/cache/shards/${shard}/clusters/${cluster}/apis/apis.kcp.io/v1alpha2/apiexports`,
    );
    return items.map(({ metadata }) => metadata.name ?? '').toSorted();
  }

  async objects(): Promise<number> {
    const counts = [...(await this.slices(this.parent)).values()].map((text) => Number.parseInt(text));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** How many writes of the shards the leaves have stored since they started. */
  async writes(): Promise<number> {
    const counts = await Promise.all(
      this.leaves.map(async (leaf) =>
        Number(/^strata_mutations_total\{outcome="written"\} (\d+)$/m.exec(await textOf(leaf, '/metrics'))?.[1] ?? 0),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Lines with one of these events in the caches' logs. */
  async logged(...events: readonly string[]): Promise<readonly string[]> {
    const logs = await Promise.all([this.parent, this.another, ...this.leaves].map((cache) => cache.log()));
    return logs.flatMap((log) => log.split('\n')).filter((line) => events.some((event) => line.includes(`"${event}"`)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cache of [...this.leaves, this.another, this.parent]) await cache[Symbol.asyncDispose]();
    for (const uplink of this.#uplinks) await uplink.close();
  }
}

async function statusOf(cache: StrataProcess): Promise<StatusReport> {
  return JSON.parse(await textOf(cache, '/services/cache/status')) as StatusReport;
}

async function textOf(cache: StrataProcess, path: string): Promise<string> {
  return (await clientOf(cache).raw('GET', path)).text;
}

const clients = new WeakMap<StrataProcess, KubeClient>();

/**
 * One client for each cache, kept open so that requests need no handshake; closed with the cache.
 */
function clientOf(cache: StrataProcess): KubeClient {
  const client = clients.get(cache) ?? cache.client();
  clients.set(cache, client);
  return client;
}

type Leaf = Readonly<{ name: string; url: string; trusted: string }>;

async function startLeaf(parent: StrataProcess, { name, url, trusted }: Leaf): Promise<StrataProcess> {
  const { certificateFile, keyFile } = parent.authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
  const flags = [
    digests,
    `--parent-urls=${url}`,
    `--parent-ca-file=${trusted}`,
    `--parent-cert-file=${certificateFile}`,
    `--parent-key-file=${keyFile}`,
  ];
  return StrataProcess.start({ flags, config: leafConfig });
}

function kubeconfigOf({ folder, certificateFile, url, master }: StrataProcess): Promise<string> {
  return writeCacheKubeconfig(join(folder, 'cache.kubeconfig'), { url, authorityFile: certificateFile, master });
}

/** Every object of kcp's own types. */
async function contents(cache: StrataProcess): Promise<ReadonlyMap<string, string>> {
  const lists = await Promise.all(collections.map((collection) => objectsOf(clientOf(cache), collection)));
  return new Map(lists.flat());
}

async function objectsOf(client: KubeClient, collection: string): Promise<(readonly [string, string])[]> {
  const { items } = await client.list(collection);
  return items.map((item) => [`${collection.slice(collection.indexOf('/apis/'))} ${keyOf(item)}`, comparable(item)]);
}

function keyOf({ metadata }: KubeObject): string {
  const { 'kcp.io/shard': shard, 'kcp.io/cluster': cluster } = metadata.annotations ?? {};
  return `${shard}|${cluster}|${metadata.namespace ?? ''}/${metadata.name}`;
}

function comparable(object: KubeObject): string {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}

function differencesOf(own: ReadonlyMap<string, string>, above: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...own.keys(), ...above.keys()])]
    .filter((key) => own.get(key) !== above.get(key))
    .map((key) => `${key}\n  here:   ${own.get(key) ?? 'absent'}\n  parent: ${above.get(key) ?? 'absent'}`);
}
