/**
 * Starts what kcp's operator and charts start: each program with exactly their arguments and
 * volumes, as a user who owns nothing, on a read-only root. Finds one that does not become ready,
 * answer, end by SIGTERM, or come back on its volumes. Needs root and Linux namespaces; the log
 * says when a test is skipped.
 */
import { generateKeyPairSync } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { KubeClient } from '../../support/kube-client.js';
import { Container, imageUser, type ContainerOptions } from '../../support/machines/container.js';
import {
  chartCacheServer,
  chartFrontProxy,
  operatorCacheServer,
  operatorFrontProxy,
  type Content,
  type Manifest,
} from '../../support/machines/kcp-manifests.js';
import { documentedYaml } from '../../support/documented-yaml.js';
import { Volumes } from '../../support/machines/volumes.js';
import { syncPaths } from '../../support/path-pusher.js';
import { aShard } from '../../support/proxy/a-front-door.js';
import { EchoBackend, type Echoed } from '../../support/proxy/echo-backend.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TestAuthority, type Certificate } from '../../support/test-authority.js';
import { test } from '../../support/test.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { EtcdMembers } from '../etcd/etcd-members.js';
import { etcdProgram } from '../etcd/etcd-program.js';

const readyMsMax = 60_000;
const exportsPath = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one' } };
const why = Container.whyNot();

/** `folder` is removed after the test. */
type Pod = Readonly<{ folder: string; authority: TestAuthority; volumes: Volumes }>;

function inContainer(title: string, body: (t: ExecutionContext, pod: Pod) => Promise<void>, { fsGroup }: { fsGroup?: number } = {}): void {
  test(title, async (t) => {
    if (why !== undefined) {
      t.log(`SKIPPED: ${why}`);
      t.pass();
      return;
    }
    const folder = await mkdtemp(join(tmpdir(), 'strata-pod-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, 'volumes'));
    const volumes = new Volumes(join(folder, 'volumes'), fsGroup === undefined ? {} : { fsGroup });
    await body(t, { folder, authority: new TestAuthority(folder), volumes });
  });
}

type MountPoint = Readonly<{ mountPath: string }>;
type Values = Readonly<{ securityContext: { fsGroup: number }; extraFlags: readonly string[]; extraVolumeMounts: readonly MountPoint[] }>;
type Documented = Readonly<{ cache: Values; spec: Readonly<{ extraArgs?: readonly string[]; extraVolumeMounts: readonly MountPoint[] }> }>;

function documented(name: string): Documented {
  return documentedYaml('kcp.md', name);
}

async function textsOf({ certificate, key }: Certificate, authority: TestAuthority): Promise<Record<string, string>> {
  return { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': await readFile(authority.certificateFile, 'utf8') };
}

const serving = { user: 'server', groups: [], hosts: ['127.0.0.1', 'localhost', 'strata'], usages: ['server' as const] };

/** For the root shard, which no front door asks, and for a webhook, which does not answer. */
const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'one', cluster: { server: 'https://root-kcp:6443' } }],
  users: [{ name: 'one', user: {} }],
  contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
  'current-context': 'one',
};

/** The files of each kind of Secret or ConfigMap that a manifest mounts. */
async function contentsOf(content: Content, { authority }: Pod): Promise<Record<string, string>> {
  switch (content) {
    case 'serving':
      return textsOf(authority.issue(serving), authority);
    case 'client':
    case 'etcd':
      return textsOf(authority.issue({ user: 'client', groups: [] }), authority);
    case 'ca': {
      const ca = await readFile(authority.certificateFile, 'utf8');
      return { 'tls.crt': ca, 'ca.crt': ca, 'tls.key': await readFile(authority.keyFile, 'utf8') };
    }
    case 'service-account': {
      const { certificate } = authority.issue({ user: 'service-account', groups: [] });
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      return { 'tls.crt': certificate, 'tls.key': privateKey.export({ type: 'pkcs1', format: 'pem' }).toString() };
    }
    case 'kubeconfig':
      return { kubeconfig: JSON.stringify(kubeconfig) };
    case 'mapping': {
      const shown =
        'proxy_client_cert: /etc/kcp-front-proxy/requestheader-client/tls.crt, proxy_client_key: /etc/kcp-front-proxy/requestheader-client/tls.key';
      const mapping = (path: string): string =>
        `- {path: ${path}, backend: "https://127.0.0.1:7444", backend_server_ca: /etc/kcp/tls/ca/tls.crt, ${shown}}`;
      return { 'path-mapping.yaml': ['/clusters/', '/services/'].map(mapping).join('\n') };
    }
    case 'tokens': {
      const tokens = 'secret,carol,7,"team,dropped"\n';
      return { 'token.csv': tokens, 'auth-token.csv': tokens };
    }
  }
}

async function started(t: ExecutionContext, pod: Pod, manifest: Manifest, more: Partial<ContainerOptions> = {}): Promise<Container> {
  const mounts = [...(more.mounts ?? [])];
  for (const path of manifest.scratch) mounts.push(await pod.volumes.emptyDir(path));
  for (const [path, content] of Object.entries(manifest.mounted))
    mounts.push(await pod.volumes.files(path, await contentsOf(content, pod)));
  const { command, port, user = imageUser } = manifest;
  const container = await Container.start({ command, user, serves: [port], ...more, mounts });
  t.teardown(() => container[Symbol.asyncDispose]());
  return container;
}

function clientOf(t: ExecutionContext, url: string, as?: Certificate): KubeClient {
  const client = new KubeClient({ url, ...(as !== undefined && { certificate: as.certificate, key: as.key }) });
  t.teardown(() => client.close());
  return client;
}

/** Waits until `/readyz` answers 200, without a certificate, as kubelet's probe does. */
async function ready(t: ExecutionContext, container: Container, port: number): Promise<void> {
  const probe = clientOf(t, container.url(port));
  let answer = '';
  try {
    await until(async () => {
      if (!container.isRunning) throw new Error('it has ended');
      const { status, text } = await probe.raw('GET', '/readyz', { timeoutMs: 1_000 }).catch(() => ({ status: 0, text: '' }));
      answer = text;
      return status === 200;
    }, readyMsMax);
  } catch (error) {
    throw new Error(`not ready: ${(error as Error).message}\n${answer}\n${(await container.log()).slice(-3_000)}`, { cause: error });
  }
}

/** Asserts that a container ends by SIGTERM with 0, and has kept an object when it comes back. */
async function keeps(t: ExecutionContext, { authority }: Pod, container: Container, port: number): Promise<void> {
  await ready(t, container, port);
  t.is((await clientOf(t, container.url(port), authority.master).raw('POST', exportsPath, { body: anExport })).status, 201);
  t.is(await container.stop(), 0, await container.log());
  container.restart();
  await ready(t, container, port);
  t.is((await clientOf(t, container.url(port), authority.master).raw('GET', `${exportsPath}/one`)).status, 200);
  t.is(await container.stop(), 0);
}

inContainer('a CacheServer of kcp-operator keeps its data in its emptyDir', async (t, pod) => {
  const container = await started(
    t,
    pod,
    operatorCacheServer({ verbosity: 2 }, { args: documented('kind: CacheServer').spec.extraArgs ?? [] }),
  );

  await keeps(t, pod, container, 6443);
});

inContainer('a CacheServer of kcp-operator with an etcd of its own needs no writable volume', async (t, pod) => {
  const found = await etcdProgram();
  if ('why' in found) {
    t.log(`SKIPPED: ${found.why}`);
    t.pass();
    return;
  }
  await using etcd = await EtcdMembers.start(found, { isSecure: true });
  const [endpoint = ''] = etcd.endpoints;
  const port = Number(new URL(endpoint).port);
  const manifest = operatorCacheServer({ etcd: { endpoints: ['https://127.0.0.1:2379'], prefix: '/tenants/one' } });
  const { ca, certificate, key } = etcd.tls!;
  const path = '/etc/cache-server/etcd';
  const { [path]: _, ...mounted } = manifest.mounted;
  const mount = await pod.volumes.files(path, { 'ca.crt': ca, 'tls.crt': certificate!, 'tls.key': key! });
  const container = await started(t, pod, { ...manifest, mounted }, { mounts: [mount], reaches: { 2379: port } });

  await keeps(t, pod, container, 6443);
});

/** The chart `cache` with the values of docs/kcp.md. */
async function documentedChart(t: ExecutionContext, pod: Pod): Promise<Container> {
  const { extraFlags, extraVolumeMounts } = documented('cache:\n').cache;
  const mounts = [await pod.volumes.claim(extraVolumeMounts[0]!.mountPath)];
  return started(t, pod, chartCacheServer({ args: extraFlags }), { mounts });
}

inContainer(
  'a cache of the chart keeps its data in a claim that it may write because of its fsGroup',
  async (t, pod) => {
    t.is(documented('cache:\n').cache.securityContext.fsGroup, imageUser);
    await keeps(t, pod, await documentedChart(t, pod), 8012);
  },
  { fsGroup: imageUser },
);

inContainer('a cache does not start on a claim without an fsGroup, and names the folder, the user and what helps', async (t, pod) => {
  const container = await documentedChart(t, pod);

  t.is(await container.ended(), 1);
  const log = await container.log();
  t.regex(log, /\/var\/lib\/strata/);
  t.regex(log, /uid 10001/);
  t.regex(log, /fsGroup/);
});

inContainer('a cache does not start on a root without a volume, and names the folder and what helps', async (t, pod) => {
  const { command, ...manifest } = chartCacheServer({ args: ['--client-ca-file=/etc/cache/tls/ca/tls.crt'] });
  const container = await started(t, pod, { ...manifest, command });

  t.is(await container.ended(), 1);
  t.regex(await container.log(), /mkdir '\.kcp-cache\/data'\. The file system of \/var\/lib\/strata is read-only: mount a volume there/);
});

inContainer('a cache does not start with a secret that it may not read, and names the owner of the file', async (t, pod) => {
  const manifest = operatorCacheServer();
  const path = '/etc/cache-server/tls/server';
  const { [path]: content, ...mounted } = manifest.mounted;
  const mount = await pod.volumes.files(path, await contentsOf(content!, pod));
  await chmod(join(mount.folder, 'tls.key'), 0o400);
  const container = await started(t, pod, { ...manifest, mounted }, { mounts: [mount] });

  t.is(await container.ended(), 1);
  t.regex(await container.log(), /tls\.key belongs to uid 0, gid 0 \(mode 0400\), and this process runs as uid 10001/);
});

inContainer('a cache server without a certificate makes one, and keeps it with its data', async (t, pod) => {
  const args = ['--root-directory=/data', `--client-ca-file=/ca/tls.crt`];
  const container = await started(t, pod, {
    command: ['/cache-server', ...args],
    mounted: { '/ca': 'ca' },
    scratch: ['/data'],
    port: 6443,
  });

  await keeps(t, pod, container, 6443);
});

type Above = Readonly<{ cache: TestServer; shard: EchoBackend; authority: TestAuthority }>;

/**
 * What a front door follows: a cache that knows `root:org` on the shard `root`. The front door's
 * container reaches the cache at port 7443 and the shard at port 7444.
 */
async function above(t: ExecutionContext, { authority }: Pod): Promise<Above> {
  const types = '[logicalclusters.paths.strata, workspaces.paths.strata, shards.core.kcp.io]';
  const { certificateFile, keyFile } = authority.issue(serving);
  const cache = await aServer(t, {
    authority,
    config: `children: {'*': {offer: [{types: ${types}}]}}`,
    flags: { 'tls-cert-file': certificateFile, 'tls-private-key-file': keyFile },
  });
  const shard = await EchoBackend.start(t, authority);
  const certificate = await readFile(authority.certificateFile, 'utf8');
  const pusher = await RawPusher.open({ url: cache.url, certificate, master: cache.master }, { name: 'root' });
  t.teardown(() => pusher.socket.terminate());
  await syncPaths(pusher, 'root', {
    clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org' } },
    workspaces: { 'root org': { cluster: 'org1' } },
  });
  await pusher.syncWhole(
    sliceOf('shards', { group: 'core.kcp.io', shard: 'root' }),
    [aShard('root', 'https://127.0.0.1:7444')],
    'v1alpha1',
  );
  return { cache, shard, authority };
}

/** A front door with the arguments and volumes of docs/kcp.md, but for the port of the cache. */
async function aFrontDoor(
  t: ExecutionContext,
  pod: Pod,
  made: (extra: Readonly<{ args: readonly string[] }>) => Manifest,
): Promise<Readonly<{ container: Container; port: number }>> {
  const { spec } = documented('kind: FrontProxy');
  const args = spec.extraArgs!.map((each) => each.replace('https://strata:6443', 'https://strata:7443'));
  const [data, parent] = spec.extraVolumeMounts;
  const { cache, shard, authority } = await above(t, pod);
  const link = authority.issue({ user: 'front-door', groups: ['strata'], uris: ['strata://cache/front-door'] });
  const mounts = [await pod.volumes.emptyDir(data!.mountPath), await pod.volumes.files(parent!.mountPath, await textsOf(link, authority))];
  const manifest = made({ args });
  const container = await started(t, pod, manifest, { mounts, hosts: ['strata'], reaches: { 7443: cache.port, 7444: shard.port } });
  await ready(t, container, manifest.port);
  // A ready front door has everything, and knows soon after that it does: then it answers 403 here.
  const client = clientOf(t, container.url(manifest.port));
  await until(async () => (await client.raw('GET', '/clusters/nowhere')).status === 403);
  return { container, port: manifest.port };
}

for (const [name, made, fsGroup] of [
  ['a FrontProxy of kcp-operator', operatorFrontProxy],
  ['the front proxy of the chart kcp', chartFrontProxy],
  ['the front proxy of the chart kcp, with an fsGroup', chartFrontProxy, 65_532],
] as const) {
  const options = fsGroup === undefined ? {} : { fsGroup };

  inContainer(
    `${name} serves as a front door with its extra volumes`,
    async (t, pod) => {
      const { container, port } = await aFrontDoor(t, pod, (extra) => made({ auth: false }, extra));
      const user = pod.authority.issue({ user: 'alice', groups: ['team'] });

      const { status, text } = await clientOf(t, container.url(port), user).raw('GET', '/clusters/root:org/echo');
      t.is(status, 200, text);
      t.like((JSON.parse(text) as Echoed).headers, { 'x-remote-user': 'alice', 'x-remote-group': 'system:authenticated, team' });
      t.is(await container.stop(), 0);
      container.restart();
      await ready(t, container, port);
      t.is(await container.stop(), 0);
    },
    options,
  );

  inContainer(
    `${name} with all flags for tokens checks tokens, whichever issuer does not answer`,
    async (t, pod) => {
      const { container, port } = await aFrontDoor(t, pod, (extra) => made({ auth: true }, extra));
      const ask = (token: string) =>
        clientOf(t, container.url(port)).raw('GET', '/clusters/root:org/echo', { headers: { authorization: `Bearer ${token}` } });

      const { status, text } = await ask('secret');
      t.is(status, 200, text);
      const groups = made === operatorFrontProxy ? 'system:authenticated, team' : 'dropped, system:authenticated, team';
      t.like((JSON.parse(text) as Echoed).headers, { 'x-remote-user': 'carol', 'x-remote-group': groups });
      t.is((await ask('other')).status, 401);
      t.is(await container.stop(), 0);
    },
    options,
  );
}
