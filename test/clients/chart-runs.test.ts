/**
 * Starts what the chart renders. Every container of the examples must accept its arguments and find
 * its files, its probes must succeed, and releases must join as a tree. Needs `helm`, or `go` to
 * build one; skipped with a log line without them.
 */
import type { ExecutionContext } from 'ava';
import type { StatusReport } from '../../src/domain/status.js';
import { members } from '../faults/etcd/with-members.js';
import { KubeClient } from '../support/kube-client.js';
import { ShardStandIn } from '../support/shard-stand-in.js';
import type { TestAuthority } from '../support/test-authority.js';
import { until } from '../support/test-server.js';
import { ClusterStandIn, whyNoOtherUser, type Pod } from './chart/cluster-stand-in.js';
import { helmTest } from './chart/helm.js';

const offerOfPaths = { offer: { types: ['logicalclusters.paths.strata', 'workspaces.paths.strata', 'shards.core.kcp.io'] } };

/** A stand-in for a cluster with a shard's secrets, and a reader of a cache's status. */
async function aCluster(t: ExecutionContext) {
  if (whyNoOtherUser !== undefined) t.log(`SKIPPED (files as fsGroup leaves them): ${whyNoOtherUser}`);
  const cluster = await ClusterStandIn.open(t);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  shard.store.put('apiexports.apis.kcp.io', 'root', { metadata: { name: 'one' } });
  const embedded = shard.kubeconfigText({ token: ShardStandIn.token });
  cluster.make('Secret', 'amber-kubeconfig', {
    kubeconfig: embedded,
    // This kubeconfig names an authority file that lies beside it.
    'shard.kubeconfig': embedded
      .replaceAll('"stand-in"', '"shard"')
      .replace(/"certificate-authority-data":"[^"]+"/, '"certificate-authority":"shard-ca.crt"'),
    'shard-ca.crt': shard.certificate.cert,
  });
  const kcp = cluster.authority('kcp');
  cluster.make('Secret', 'kcp-client-ca', { 'ca.crt': kcp.certificate, 'tls.crt': kcp.certificate });
  const shown = kcp.issue({ user: 'front-proxy', groups: [] });
  cluster.make('Secret', 'kcp-requestheader-client', { 'tls.crt': shown.certificate, 'tls.key': shown.key, 'ca.crt': kcp.certificate });
  return {
    cluster,
    /** `as`: the authority that the cache trusts. */
    async status({ url }: Pod, as: TestAuthority): Promise<StatusReport> {
      const { certificate, key } = as.master;
      const client = new KubeClient({ url, certificate, key });
      try {
        return JSON.parse((await client.raw('GET', '/services/cache/status')).text) as StatusReport;
      } finally {
        client.close();
      }
    },
  };
}

/** The names of the connected children, sorted. */
function childrenOf({ tree }: StatusReport): string {
  const connected = tree?.children.filter(({ connection }) => connection.kind === 'connected') ?? [];
  return connected
    .map(({ name }) => name)
    .toSorted()
    .join();
}

/** For example `amber via "local": connected, 1 wait, whole`. */
function shardsOf({ shards }: StatusReport): string {
  return shards
    .map(({ shard, via, connection, standbys, slices }) => {
      const whole = slices.length > 0 && slices.every((slice) => slice.whole) ? 'whole' : 'not whole';
      return `${shard} via ${JSON.stringify(via)}: ${connection.kind}, ${standbys} wait, ${whole}`;
    })
    .join();
}

/** Passes once the text matches; fails with the last text. */
async function becomes(t: ExecutionContext, seen: () => Promise<string>, wanted: RegExp): Promise<void> {
  let last = '';
  await until(async () => wanted.test((last = await seen()))).catch(() => t.fail(`${last} does not match ${wanted}`));
  t.regex(last, wanted);
}

helmTest(
  'a root, and below it a region with its agents and front doors: all find each other, and a policy is changed without a restart',
  async (t) => {
    const { cluster, status } = await aCluster(t);
    const root = { name: 'strata-root', example: 'root', sets: { 'cache.extraArgs': ['--policy-poll=200ms'] } };
    const [rootPod] = await cluster.install(root);
    cluster.reach('https://cache.root.example:6443', rootPod!.url);

    const [region, ...others] = await cluster.install({ name: 'strata-eu', example: 'region' });

    t.deepEqual(
      others.map(({ name }) => name),
      ['strata-eu-agent-0', 'strata-eu-agent-1', 'strata-eu-front-door-0', 'strata-eu-front-door-1'],
    );
    const [ofRoot, ofRegion] = ['strata-root-authority', 'strata-eu-authority'].map((name) => cluster.authority(name)) as [
      TestAuthority,
      TestAuthority,
    ];
    await becomes(t, async () => childrenOf(await status(region!, ofRegion)), /^strata-eu-front-door-0,strata-eu-front-door-1$/);
    await becomes(t, async () => shardsOf(await status(region!, ofRegion)), /^amber via "local": connected, 1 wait, whole$/);
    await becomes(t, async () => childrenOf(await status(rootPod!, ofRoot)), /^eu$/);
    await becomes(t, async () => shardsOf(await status(rootPod!, ofRoot)), /^amber via .*eu.*: connected/);

    await cluster.upgrade({ ...root, sets: { ...root.sets, 'cache.children': { eu: { accept: { shards: ['birch'] } } } } });
    await becomes(
      t,
      async () => (await rootPod!.log()).split('\n').find((line) => line.includes('policies.reloaded')) ?? '',
      /strata\.yaml/,
    );
    for (const pod of [rootPod!, region!, ...others]) t.false(pod.hasEnded, pod.name);
    for (const pod of [...others, region!, rootPod!]) t.is(await pod.stop(), 0, pod.name);
  },
);

helmTest('a cache, an agent and front doors that are three releases find each other', async (t) => {
  const { cluster, status } = await aCluster(t);
  const children = { 'front-door-0': offerOfPaths, 'front-door-1': offerOfPaths };
  const [cache] = await cluster.install({ name: 'strata', example: 'cache', sets: { 'cache.children': children } });
  const ofTheCache = { 'certificates.issuerRef': { name: 'strata-authority', kind: 'Issuer' } };

  const [pushing, waiting] = await cluster.install({ name: 'amber-agent', example: 'agent' });
  await cluster.install({ name: 'strata-door', example: 'front-door', sets: ofTheCache });

  await becomes(t, async () => childrenOf(await status(cache!, cluster.authority('strata-authority'))), /^front-door-0,front-door-1$/);
  await becomes(
    t,
    async () => shardsOf(await status(cache!, cluster.authority('strata-authority'))),
    /^amber via "local": connected, 1 wait, whole$/,
  );
  for (const agent of [pushing!, waiting!]) t.regex((await agent.get('/metrics')).text, /^strata_agent_/m);
});

helmTest('cache, agent and front door run with secrets made by hand, without cert-manager', async (t) => {
  const { cluster, status } = await aCluster(t);
  const [rootPod] = await cluster.install({ name: 'strata-root', example: 'root' });
  cluster.reach('https://cache.root.example:6443', rootPod!.url);
  const [own, root, kcp] = ['own', 'strata-root-authority', 'kcp'].map((name) => cluster.authority(name)) as [
    TestAuthority,
    TestAuthority,
    TestAuthority,
  ];
  const pair = (name: string, by: TestAuthority, subject: Parameters<TestAuthority['issue']>[0]): void => {
    const { certificate, key } = by.issue(subject);
    cluster.make('Secret', name, { 'tls.crt': certificate, 'tls.key': key });
  };
  const hosts = ['strata-cache.kcp.svc', '127.0.0.1'];
  pair('strata-serving', own, { user: 'strata-cache', groups: [], hosts, usages: ['server'] });
  pair('front-door-serving', kcp, { user: 'door', groups: [], hosts, usages: ['server'] });
  pair('strata-eu', root, { user: 'eu', groups: ['strata'], uris: ['strata://cache/eu'] });
  pair('strata-amber', own, { user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  pair('strata-door-0', own, { user: 'door', groups: ['strata'], uris: ['strata://cache/strata-front-door-0'] });
  cluster.make('Secret', 'strata-ca', { 'ca.crt': own.certificate });
  cluster.make('Secret', 'root-ca', { 'root.pem': root.certificate });

  const [cache] = await cluster.install({ name: 'strata', example: 'own-secrets' });

  await becomes(t, async () => childrenOf(await status(cache!, own)), /^strata-front-door-0$/);
  await becomes(t, async () => shardsOf(await status(cache!, own)), /^amber via "local": connected, 1 wait, whole$/);
  await becomes(t, async () => childrenOf(await status(rootPod!, root)), /^eu$/);
});

helmTest('three servers on a secured etcd are one cache', async (t) => {
  const etcd = await members(t, { members: 3, isSecure: true });
  if (etcd === undefined) return;
  t.teardown(() => etcd[Symbol.asyncDispose]());
  const { cluster, status } = await aCluster(t);
  const { ca, certificate = '', key = '' } = etcd.tls!;
  cluster.make('Secret', 'etcd-client', { 'ca.crt': ca, 'tls.crt': certificate, 'tls.key': key });
  etcd.endpoints.forEach((at, i) => cluster.reach(`https://etcd-${i}.etcd:2379`, at));

  const pods = await cluster.install({ name: 'strata', example: 'cache-etcd' });

  t.is(pods.length, 3);
  const ids = await Promise.all(pods.map(async (pod) => (await status(pod, cluster.authority('strata'))).cache.id));
  t.is(new Set(ids).size, 1, 'all servers report the same cache id');
});

helmTest('the example with every option starts, and joins a root whose certificates have the same issuer', async (t) => {
  const { cluster, status } = await aCluster(t);
  cluster.make('ConfigMap', 'notes', { 'readme.txt': 'hello' });
  const certificates = { createAuthority: false, issuerRef: { name: 'strata', kind: 'ClusterIssuer' } };
  const sets = { certificates, 'cache.children': { hub: { offer: { types: ['*'] } } } };
  const [rootPod] = await cluster.install({ name: 'strata-root', example: 'root', sets });
  cluster.reach('https://cache.root.example:6443', rootPod!.url);

  const [cache] = await cluster.install({ name: 'strata', example: 'everything' });

  t.true((await status(cache!, cluster.authority('strata'))).cache.ready);
  await becomes(t, async () => childrenOf(await status(rootPod!, cluster.authority('strata'))), /^hub$/);
  const reader = cluster.secret('strata-prometheus');
  t.is((await cache!.get('/metrics')).status, 403);
  t.regex((await cache!.get('/metrics', reader)).text, /^strata_build_info/m);
});

helmTest('without fsGroup the pod’s user cannot use keys and disk, and the server ends with EACCES', async (t) => {
  const { cluster } = await aCluster(t);
  if (whyNoOtherUser !== undefined) {
    t.pass();
    return;
  }
  const without = { runAsUser: 10001, runAsGroup: 10001 };

  const error = await t.throwsAsync(
    cluster.install({ name: 'strata', example: 'cache' }, (documents) =>
      documents.map((document) => {
        if (document.kind !== 'StatefulSet') return document;
        const copy = structuredClone(document) as { spec: { template: { spec: { securityContext: unknown } } } };
        copy.spec.template.spec.securityContext = without;
        return copy as typeof document;
      }),
    ),
  );

  t.regex(error?.message ?? '', /ended[^]*EACCES/);
});
