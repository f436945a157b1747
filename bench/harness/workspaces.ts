/**
 * A kcp of one shard as caches see it, and a front door that answers for it. Workspaces of root,
 * each with its LogicalCluster and two objects, are added and deleted.
 *
 *   this process ──websocket──▶ cache ──link──▶ front door ──▶ a backend in this process
 *
 * The backend answers every path that leads to the shard.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathEntryVersion } from '../../src/domain/path-entry.js';
import type { PathAnswer } from '../../src/domain/path-resolution.js';
import type { Slice } from '../../src/domain/slice.js';
import type { PushedObject } from '../../src/frames/frame.js';
import { FrontDoorProcess } from '../../test/e2e/front-door-process.js';
import { KubeClient } from '../../test/support/kube-client.js';
import { clusterSlice, pushedCluster, pushedWorkspace, syncPaths, workspaceSlice } from '../../test/support/path-pusher.js';
import { aShard } from '../../test/support/proxy/a-front-door.js';
import { EchoBackend } from '../../test/support/proxy/echo-backend.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../test/support/raw-pusher.js';
import { StrataProcess } from '../../test/support/strata-process.js';
import { until } from '../../test/support/test-server.js';
import type { CleanUp } from './clean-up.js';

const shard = 'root';
const paths = '{types: [logicalclusters.paths.strata, workspaces.paths.strata]}';
const config = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}, ${paths}]}}\n`;
const pushedAtOnce = 250;
const filling = 'x'.repeat(3_000);
const readyMsMax = 30_000;

const exports = sliceOf('apiexports', { shard });
const roles = sliceOf('clusterroles', { shard, group: 'rbac.authorization.k8s.io' });

/**
 * A slice, and how a Workspace or its logical cluster appears in it. `place`: the object's logical
 * cluster and name. `of`: the object.
 */
type Part = Readonly<{
  slice: Slice;
  version: string;
  place: (name: string) => readonly [cluster: string, name: string];
  of: (name: string) => PushedObject;
}>;

const parts: readonly Part[] = [
  { slice: exports, version: 'v1alpha2', place: (name) => [name, 'one'], of: anExport },
  { slice: roles, version: 'v1', place: (name) => [name, 'one'], of: aRole },
  {
    slice: clusterSlice(shard),
    version: pathEntryVersion,
    place: (name) => [name, 'cluster'],
    of: (name) => pushedCluster(name, { path: `root:${name}` }),
  },
  {
    slice: workspaceSlice(shard),
    version: pathEntryVersion,
    place: (name) => ['root', name],
    of: (name) => pushedWorkspace(`root ${name}`, { cluster: name, shard }),
  },
];

type ServerOptions = Readonly<{ flags?: readonly string[]; environment?: Readonly<Record<string, string>> }>;
type Servers = Readonly<{ cache: StrataProcess; door: FrontDoorProcess; pusher: RawPusher }>;

export class Workspaces {
  readonly cache: StrataProcess;
  readonly door: FrontDoorProcess;
  /** Clients with a certificate of masters, one connection each. */
  readonly clients: Readonly<{ cache: KubeClient; door: KubeClient }>;
  readonly #pusher: RawPusher;

  private constructor({ cache, door, pusher }: Servers) {
    this.cache = cache;
    this.door = door;
    this.#pusher = pusher;
    const { certificate, key } = cache.master;
    this.clients = { cache: cache.client({ http2: true }), door: new KubeClient({ url: door.url, certificate, key, http2: true }) };
  }

  /** Resolves when the front door answers for root. `options` are those of both servers. */
  static async open(stack: CleanUp, options: ServerOptions = {}): Promise<Workspaces> {
    const cache = stack.use(await StrataProcess.start({ config, ...options }));
    const backend = await EchoBackend.start({ teardown: (end) => stack.defer(async () => void (await end())) }, cache.authority);
    const pusher = await RawPusher.open({ url: cache.url, certificate: cache.certificate, master: cache.master }, { name: shard });
    stack.defer(async () => pusher.socket.terminate());
    await syncPaths(pusher, shard, { clusters: { root: { path: 'root', parentless: true } } });
    await pusher.syncWhole(sliceOf('shards', { group: 'core.kcp.io', shard }), [aShard(shard, backend.url)], 'v1alpha1');
    for (const slice of [exports, roles]) await pusher.syncWhole(slice, []);
    const serving = cache.authority.issue({ user: 'door', groups: [], hosts: ['127.0.0.1'], usages: ['server'] });
    const behind = cache.authority.issue({ user: 'front-proxy', groups: [] });
    const mapping = join(cache.folder, 'mapping.yaml');
    const shown = `backend_server_ca: ${cache.authority.certificateFile}, proxy_client_cert: ${behind.certificateFile}, proxy_client_key: ${behind.keyFile}`;
    await writeFile(mapping, `- {path: /clusters/, backend: "${backend.url}", ${shown}}\n`);
    const files = { mapping, clientCa: cache.authority.certificateFile, certificate: serving.certificateFile, key: serving.keyFile };
    const door = stack.use(await FrontDoorProcess.start(cache, files, options));
    const workspaces = new Workspaces({ cache, door, pusher });
    stack.defer(async () => workspaces.clients.door.close());
    await until(
      async () => (await workspaces.statusAtDoor('root')) === 200 && (await workspaces.statusAtDoor('nobody')) === 403,
      readyMsMax,
    );
    return workspaces;
  }

  /** Resolves when the cache has acknowledged all of them. */
  async add(names: readonly string[]): Promise<void> {
    for (const { slice, version, of } of parts)
      for (let at = 0; at < names.length; at += pushedAtOnce)
        await this.#pusher.acknowledged(this.#pusher.put(slice, names.slice(at, at + pushedAtOnce).map(of), version));
  }

  /** Calls `sent` when the last frame is sent. Resolves as `add` does. */
  async delete(names: readonly string[], sent: () => void = () => {}): Promise<void> {
    for (let at = 0; at < names.length; at += pushedAtOnce) {
      let last = 0;
      for (const name of names.slice(at, at + pushedAtOnce))
        for (const { slice, place } of parts) {
          const [cluster, object] = place(name);
          last = this.#pusher.delete(slice, [object], cluster);
        }
      if (at + pushedAtOnce >= names.length) sent();
      await this.#pusher.acknowledged(last);
    }
  }

  /** 200: the backend has answered. 403: the path does not exist. */
  async statusAtDoor(name: string): Promise<number> {
    return (await this.clients.door.raw('GET', `/clusters/${name === 'root' ? name : `root:${name}`}/echo`)).status;
  }

  async resolvedAtCache(name: string): Promise<PathAnswer['kind']> {
    const { text } = await this.clients.cache.raw('GET', `/services/cache/resolve?path=root:${name}`);
    return (JSON.parse(text) as PathAnswer).kind;
  }
}

function anExport(cluster: string): PushedObject {
  return pushedExport('one', { cluster, spec: { filling } });
}

function aRole(cluster: string): PushedObject {
  const rules = [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }];
  return pushedObject(
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'one', uid: `uid-of-role-of-${cluster}` }, rules },
    cluster,
  );
}
