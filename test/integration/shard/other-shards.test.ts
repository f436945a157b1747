/**
 * An object whose annotation names another shard was copied from a cache. The agent must not push
 * it in any form.
 */
import { test } from '../../support/test.js';
import { formatResource } from '../../../src/domain/resource.js';
import { clusterEntries, workspaceEntries } from '../../../src/domain/path-entry.js';
import type { KubeObject } from '../../support/kube-client.js';
import { identityOf } from '../../support/shard-stand-in.js';
import { until } from '../../support/test-server.js';
import { anAgent, sliceOf } from './an-agent.js';

const exports = 'apiexports.apis.kcp.io';
const roles = 'clusterroles.rbac.authorization.k8s.io';
const cached = 'clustercachedresources.cache.kcp.io';
const passedOver = 'source.object.of-other-shard';

/** `shard`: the value of the annotation; undefined: no annotation. */
function annotated(name: string, shard: string | undefined, rest: Readonly<Record<string, unknown>> = {}): KubeObject {
  const annotations = { 'internal.kcp.io/replicate': 'x', ...(shard !== undefined && { 'kcp.io/shard': shard }) };
  return { ...rest, metadata: { name, annotations } };
}

for (const how of ['watching', 'lists'] as const) {
  test(`objects of other shards are skipped in a sync by ${how}, and logged`, async (t) => {
    const rig = await anAgent(t, {
      prepare: (shard) => {
        shard.refusesWatchList = how === 'lists';
        for (const type of [exports, roles]) {
          shard.store.put(type, 'root', annotated('plain', undefined));
          shard.store.put(type, 'root', annotated('own', 'amber'));
          shard.store.put(type, 'root', annotated('copied', 'birch'));
          shard.store.put(type, 'root', annotated('longer', 'amber2'));
        }
      },
    });
    await rig.synced();

    for (const type of [exports, roles]) t.deepEqual(rig.slices.names(sliceOf(type)), ['own', 'plain']);
    t.deepEqual(
      rig
        .events(passedOver)
        .map(({ level, fields: { resource, name, shard } }) => `${level} ${String(resource)} ${String(name)} ${String(shard)}`)
        .toSorted(),
      ['apiexports', 'clusterroles'].flatMap((type) => [`warn ${type} copied birch`, `warn ${type} longer amber2`]),
    );
  });
}

test('an object leaves when its annotation names another shard, and is pushed again once it does not', async (t) => {
  const rig = await anAgent(t, { prepare: ({ store }) => store.put(exports, 'root', annotated('one', undefined)) });
  await rig.synced();
  const { store } = rig.shard;

  store.put(exports, 'root', annotated('one', 'birch'));
  store.put(exports, 'root', annotated('other', 'birch'));
  store.put(exports, 'root', annotated('other', 'birch', { spec: 2 }));
  store.delete(exports, 'root', 'other');
  store.put(exports, 'root', annotated('one', 'amber'));
  store.put(exports, 'root', annotated('last', undefined));

  await until(() => rig.slices.names(sliceOf(exports)).includes('last'));
  const received = rig.slices.received.get(sliceOf(exports)) ?? [];
  t.false(received.includes('put other'));
  t.deepEqual(
    received.filter((each) => each.endsWith(' one')),
    ['put one', 'delete one', 'put one'],
  );
});

test('LogicalClusters and Workspaces of other shards produce no path entries', async (t) => {
  const rig = await anAgent(t, {
    pushesPaths: true,
    prepare: ({ store }) => {
      store.serve({
        group: 'tenancy.kcp.io',
        version: 'v1alpha1',
        resource: 'workspaces',
        kind: 'Workspace',
        identity: identityOf('tenancy.kcp.io'),
      });
      for (const [cluster, shard] of [
        ['root', 'amber'],
        ['org1', 'birch'],
        ['team1', undefined],
      ] as const) {
        store.put('logicalclusters.core.kcp.io', cluster, annotated('cluster', shard));
        store.put('workspaces.tenancy.kcp.io', cluster, annotated('ws', shard, { spec: { cluster: 'x' }, status: { phase: 'Ready' } }));
      }
    },
  });
  await rig.synced();

  t.deepEqual(Object.keys(rig.slices.objects(`amber|${formatResource(clusterEntries)}`)), ['root||cluster', 'team1||cluster']);
  t.deepEqual(Object.keys(rig.slices.objects(`amber|${formatResource(workspaceEntries)}`)), ['root||ws', 'team1||ws']);
});

test('a ClusterCachedResource of another shard declares nothing', async (t) => {
  const rig = await anAgent(t, {
    prepare: ({ store }) => {
      store.serve({ group: 'machines.svm.io', version: 'v1alpha1', resource: 'instances', kind: 'Instance', identity: 'unknown' });
      const annotations = { 'cache.kcp.io/resource-kind': 'Instance', 'cache.kcp.io/resource-scope': 'Cluster', 'kcp.io/shard': 'birch' };
      store.put(cached, 'acme', {
        metadata: { name: 'instances', annotations },
        spec: { group: 'machines.svm.io', version: 'v1alpha1', resource: 'instances' },
        status: { identityHash: 'hash' },
      });
      store.put('instances.machines.svm.io', 'acme', annotated('one', undefined));
    },
  });
  await rig.synced();

  t.deepEqual(rig.slices.names(sliceOf(cached)), []);
  t.false(rig.slices.slices.includes(sliceOf('instances.machines.svm.io', 'hash')));
  t.is(rig.events('shard.declared').length, 0);
});
