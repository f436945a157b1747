/**
 * The path entries that an agent pushes: from LogicalClusters and Workspaces, as kcp's own proxy
 * indexes them.
 */
import { test } from '../../support/test.js';
import { formatResource } from '../../../src/domain/resource.js';
import { clusterEntries, workspaceEntries } from '../../../src/domain/path-entry.js';
import type { KubeObject } from '../../support/kube-client.js';
import { identityOf, type ShardStandIn } from '../../support/shard-stand-in.js';
import { until } from '../../support/test-server.js';
import { anAgent, type AgentRig } from './an-agent.js';

const logicalClusters = 'logicalclusters.core.kcp.io';
const workspaces = 'workspaces.tenancy.kcp.io';
const clusters = `amber|${formatResource(clusterEntries)}`;
const edges = `amber|${formatResource(workspaceEntries)}`;

function prepared({ store }: ShardStandIn): void {
  store.serve({
    group: 'tenancy.kcp.io',
    version: 'v1alpha1',
    resource: 'workspaces',
    kind: 'Workspace',
    identity: identityOf('tenancy.kcp.io'),
  });
}

function aLogicalCluster(path: string | undefined, { owner, migrating = '' }: { owner?: object; migrating?: string } = {}): KubeObject {
  const annotations = {
    ...(path !== undefined && { 'kcp.io/path': path }),
    ...(migrating !== '' && { 'internal.kcp.io/migrating': migrating }),
  };
  return { metadata: { name: 'cluster', annotations }, spec: { ...(owner !== undefined && { owner }) }, status: { phase: 'Ready' } };
}

function aWorkspace(name: string, spec: object, phase = 'Ready', annotations: Readonly<Record<string, string>> = {}): KubeObject {
  return { metadata: { name, annotations }, spec: { type: { name: 'universal', path: 'root' }, ...spec }, status: { phase } };
}

/** Entries by `cluster|name`. */
function entriesOf(rig: AgentRig, slice: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(rig.slices.objects(slice)).map(([place, { text }]) => [place.replace('||', '|'), JSON.parse(text) as unknown]),
  );
}

test('entries are pushed only if they are requested', async (t) => {
  const rig = await anAgent(t, { prepare: prepared });
  await rig.synced();
  t.false(rig.slices.slices.includes(clusters));
  t.false(rig.slices.slices.includes(edges));
});

test('the entry of a LogicalCluster has its path, whether it has an owner and whether it migrates; system clusters have none', async (t) => {
  const owner = { name: 'org', cluster: 'root', resource: 'workspaces' };
  const rig = await anAgent(t, {
    pushesPaths: true,
    systemClusters: ['system:shard'],
    prepare: (shard) => {
      prepared(shard);
      shard.store.put(logicalClusters, 'root', aLogicalCluster('root'));
      shard.store.put(logicalClusters, 'org1', aLogicalCluster('root:org', { owner }));
      shard.store.put(logicalClusters, 'new1', aLogicalCluster(undefined, { owner }));
      shard.store.put(logicalClusters, 'moves', aLogicalCluster('root:moves', { owner, migrating: 'root:migration' }));
      shard.store.put(logicalClusters, 'odd', aLogicalCluster('Not a path', { owner }));
      shard.store.put(logicalClusters, 'system:shard', aLogicalCluster('system:shard'));
      shard.store.put(logicalClusters, 'system:admin', aLogicalCluster(undefined));
    },
  });
  await rig.synced();
  t.deepEqual(entriesOf(rig, clusters), {
    'root|cluster': { path: 'root', parentless: true },
    'org1|cluster': { path: 'root:org' },
    'new1|cluster': {},
    'moves|cluster': { path: 'root:moves', migrating: true },
    'odd|cluster': {},
  });
});

test('the entry of a Workspace says where it leads; a Workspace that leads nowhere has none', async (t) => {
  const mount = { ref: { apiVersion: 'proxy.kcp.io/v1alpha1', kind: 'KubeCluster', name: 'one' } };
  const rig = await anAgent(t, {
    pushesPaths: true,
    prepare: (shard) => {
      prepared(shard);
      shard.store.put(workspaces, 'root', aWorkspace('org', { cluster: 'org1', URL: 'https://amber.example.com/clusters/root:org' }));
      const on = (name: string): Record<string, string> => ({ 'core.kcp.io/shard': name, 'internal.tenancy.kcp.io/shard': '1pfxsevk' });
      shard.store.put(workspaces, 'root', aWorkspace('there', { cluster: 'there1' }, 'Ready', on('birch')));
      shard.store.put(workspaces, 'root', aWorkspace('odd', { cluster: 'odd1' }, 'Ready', on('Not a shard')));
      shard.store.put(workspaces, 'root', aWorkspace('new', {}, 'Scheduling'));
      shard.store.put(workspaces, 'root', aWorkspace('early', { cluster: 'early1' }, 'Scheduling'));
      shard.store.put(workspaces, 'root', aWorkspace('begun', { cluster: 'begun1' }, 'Initializing'));
      shard.store.put(workspaces, 'root', aWorkspace('off', { cluster: 'off1' }, 'Unavailable'));
      shard.store.put(workspaces, 'root', aWorkspace('mnt', { mount, URL: 'https://mounts.example.com/a' }));
      shard.store.put(workspaces, 'root', aWorkspace('unready', { mount }));
      shard.store.put(workspaces, 'root', aWorkspace('leaky', { mount, URL: 'https://user:secret@mounts.example.com/' }));
      shard.store.put(workspaces, 'root', aWorkspace('urlonly', { URL: 'https://amber.example.com/' }));
      shard.store.put(workspaces, 'root', aWorkspace('a.dot', { cluster: 'dot1' }));
    },
  });
  await rig.synced();
  t.deepEqual(entriesOf(rig, edges), {
    'root|org': { cluster: 'org1' },
    'root|there': { cluster: 'there1', shard: 'birch' },
    'root|odd': { cluster: 'odd1' },
    'root|begun': { cluster: 'begun1' },
    'root|off': { cluster: 'off1', unavailable: true },
    'root|mnt': { url: 'https://mounts.example.com/a' },
  });
});

test('entries follow their objects until these are gone, also while they are being deleted', async (t) => {
  const rig = await anAgent(t, {
    pushesPaths: true,
    prepare: (shard) => {
      prepared(shard);
      shard.store.put(workspaces, 'root', aWorkspace('org', { cluster: 'org1' }));
    },
  });
  await rig.synced();
  const { store } = rig.shard;
  store.put(workspaces, 'root', aWorkspace('team', {}, 'Scheduling'));
  store.put(workspaces, 'root', aWorkspace('team', { cluster: 'team1' }, 'Initializing'));
  await until(() => 'root|team' in entriesOf(rig, edges));
  store.put(workspaces, 'root', aWorkspace('org', { cluster: 'org1' }, 'Unavailable'));
  await until(() => JSON.stringify(entriesOf(rig, edges)['root|org']) === '{"cluster":"org1","unavailable":true}');

  const metadata: object = { name: 'org', deletionTimestamp: '2026-11-26T00:00:00Z', finalizers: ['core.kcp.io/logicalcluster'] };
  store.put(workspaces, 'root', { ...aWorkspace('org', { cluster: 'org1' }), metadata });
  await until(() => JSON.stringify(entriesOf(rig, edges)['root|org']) === '{"cluster":"org1"}');
  store.delete(workspaces, 'root', 'org');
  await until(() => !('root|org' in entriesOf(rig, edges)));
  t.deepEqual(entriesOf(rig, edges), { 'root|team': { cluster: 'team1' } });
});
