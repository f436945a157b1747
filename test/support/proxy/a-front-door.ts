/**
 * An installation in this process: a cache that holds path entries and Shards, a front door that
 * reads them, and a backend for each shard.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { proxyOptions } from '../../../src/config/options/command-options.js';
import { readCommandValues } from '../../../src/config/command-line/command-values.js';
import type { FrontDoorSettings } from '../../../src/server/open-front-door.js';
import { RawPusher, pushedObject, sliceOf } from '../raw-pusher.js';
import { syncPaths, type Entries } from '../path-pusher.js';
import { TcpProxy } from '../tcp-proxy.js';
import { until, type Teardown, type TestServer } from '../test-server.js';
import { aTree } from '../test-tree.js';
import { EchoBackend } from './echo-backend.js';

export type Installation = Readonly<{
  door: TestServer;
  cache: TestServer;
  amber: EchoBackend;
  birch: EchoBackend;
  /** The proxy between the front door and birch. */
  toBirch: TcpProxy;
  pushers: Readonly<{ amber: RawPusher; birch: RawPusher }>;
  /** Stops the front door, and starts it again on its disk. */
  restartDoor: () => Promise<TestServer>;
}>;

type Options = Readonly<{
  birchSpeaks?: 1 | 2;
  birchUrl?: string;
  mounted?: string;
  /** Whether the front door's mapping file also leads to the cache. */
  mapsCache?: boolean;
  flags?: Readonly<Record<string, string>>;
  /** Flags that only `strata proxy` has. */
  frontDoorFlags?: Readonly<Record<string, string>>;
  settings?: Partial<FrontDoorSettings>;
}>;

const types = '{types: [logicalclusters.paths.strata, workspaces.paths.strata]}';
const config = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}, ${types}]}}`;

/**
 * `amber` serves the shard `root`, which has `root` and `org1`; birch has `team1`. Resolves once
 * the front door is ready.
 */
export async function anInstallation(
  t: Teardown,
  { birchSpeaks = 2, birchUrl, mounted, mapsCache = false, flags = {}, frontDoorFlags = {}, settings = {} }: Options = {},
): Promise<Installation> {
  const tree = await aTree(t);
  const cache = await tree.cache('top', { config });
  const [amber, birch] = [await EchoBackend.start(t, tree.authority), await EchoBackend.start(t, tree.authority, { speaks: birchSpeaks })];
  const toBirch = await TcpProxy.start(birch.port);
  t.teardown(() => toBirch.close());
  const pushers = { amber: await RawPusher.open(cache, { name: 'root' }), birch: await RawPusher.open(cache, { name: 'birch' }) };
  t.teardown(() => {
    for (const { socket } of Object.values(pushers)) socket.terminate();
  });
  const entries: Entries = {
    clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org' } },
    workspaces: {
      'root org': { cluster: 'org1' },
      'org1 team': { cluster: 'team1' },
      'org1 off': { cluster: 'org1', unavailable: true },
      ...(mounted !== undefined && { 'org1 mnt': { url: mounted } }),
    },
  };
  await syncPaths(pushers.amber, 'root', entries);
  await syncPaths(pushers.birch, 'birch', { clusters: { team1: { path: 'root:org:team' } } });
  await pushers.amber.syncWhole(
    sliceOf('shards', { group: 'core.kcp.io', shard: 'root' }),
    [aShard('root', amber.url), aShard('birch', birchUrl ?? `https://127.0.0.1:${toBirch.port}`)],
    'v1alpha1',
  );

  const folder = await mkdtemp(join(tmpdir(), 'strata-door-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const proxy = tree.authority.issue({ user: 'front-proxy', groups: [] });
  const mappingFile = join(folder, 'mapping.yaml');
  const shown = `backend_server_ca: ${tree.authority.certificateFile}, proxy_client_cert: ${proxy.certificateFile}, proxy_client_key: ${proxy.keyFile}`;
  await writeFile(
    mappingFile,
    [
      ...['/clusters/', '/services/echo/'].map((path) => `- {path: ${path}, backend: "${amber.url}/base", ${shown}}`),
      `- {path: "/e2e/clusters/{cluster}", backend: "${amber.url}", ${shown}}`,
      ...(mapsCache
        ? [`- {path: /services/cache, backend: "${cache.url}", ${shown.replace(tree.authority.certificateFile, cache.certificateFile)}}`]
        : []),
    ].join('\n'),
  );
  const defaults = readCommandValues(proxyOptions, { flags: { 'mapping-file': mappingFile, ...frontDoorFlags }, environment: {} });
  const frontDoor: FrontDoorSettings = { ...defaults, ...settings };
  const door = await tree.cache('door', { parent: cache, frontDoor, flags });
  await until(async () => (await door.client({ as: null }).raw('GET', '/readyz')).status === 200);
  // A ready front door has everything, but learns that a moment later; then it answers 403 here.
  await until(async () => (await door.client({ as: null }).raw('GET', '/clusters/nowhere')).status === 403);
  const restartDoor = async (): Promise<TestServer> => {
    const again = await door.restart({ frontDoor, flags: { ...(await tree.linkFlags('door', cache)), ...flags } });
    t.teardown(() => again.close());
    return again;
  };
  return { door, cache, amber, birch, toBirch, pushers, restartDoor };
}

export function aShard(name: string, baseURL: string): ReturnType<typeof pushedObject> {
  return pushedObject(
    { apiVersion: 'core.kcp.io/v1alpha1', kind: 'Shard', metadata: { name, uid: `uid-of-${name}` }, spec: { baseURL } },
    'root',
  );
}
