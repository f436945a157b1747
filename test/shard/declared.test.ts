import test from 'ava';
import type { KubeObject } from '../support/kube-client.js';
import type { StandInType } from '../support/shard-stand-in-store.js';
import { until } from '../support/test-server.js';
import { anAgent, sliceOf, type AgentOptions, type AgentRig } from './an-agent.js';

const cached = 'clustercachedresources.cache.kcp.io';
const instances = 'instances.machines.svm.io';
const slice = sliceOf(instances, 'hash');
const type: StandInType = { group: 'machines.svm.io', version: 'v1alpha1', resource: 'instances', kind: 'Instance', identity: 'unknown' };

type Declared = Readonly<{
  identity?: string;
  labels?: Readonly<Record<string, string>>;
  metadata?: KubeObject['metadata'];
  resource?: string;
}>;

function declaring({ identity = 'hash', labels, metadata = {}, resource = 'instances' }: Declared = {}): KubeObject {
  const annotations = { 'cache.kcp.io/resource-kind': 'Instance', 'cache.kcp.io/resource-scope': 'Cluster' };
  return {
    metadata: { ...metadata, name: 'instances', annotations },
    spec: { group: 'machines.svm.io', version: 'v1alpha1', resource, ...(labels && { labelSelector: { matchLabels: labels } }) },
    status: identity === '' ? {} : { identityHash: identity },
  };
}

function named(name: string, labels: Readonly<Record<string, string>> = {}): KubeObject {
  return { metadata: { name, labels } };
}

function machines(t: Parameters<typeof anAgent>[0], prepare: NonNullable<AgentOptions['prepare']>): Promise<AgentRig> {
  return anAgent(t, {
    prepare: (shard) => {
      shard.store.serve(type);
      prepare(shard);
    },
  });
}

function places(rig: AgentRig): readonly string[] {
  return Object.keys(rig.slices.objects(slice)).map((place) => place.replace('||', ' '));
}

test('a ClusterCachedResource selects objects of its own logical cluster by their labels, and is pushed before them', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring({ labels: { app: 'x', tier: 'y' } }));
    store.put(instances, 'acme', named('in', { app: 'x', tier: 'y' }));
    store.put(instances, 'acme', named('half', { app: 'x' }));
    store.put(instances, 'other', named('elsewhere', { app: 'x', tier: 'y' }));
  });
  await until(() => rig.slices.synced.has(slice));

  t.deepEqual(places(rig), ['acme in']);
  t.is(rig.slices.after.get(slice), sliceOf(cached));
  const pushed = JSON.parse(rig.slices.objects(slice)['acme||in']?.text ?? '{}') as KubeObject;
  t.is(pushed.kind, 'Instance');
  t.is(pushed.apiVersion, 'machines.svm.io/v1alpha1');

  rig.shard.store.put(instances, 'acme', named('half', { app: 'x', tier: 'y' }));
  rig.shard.store.put(instances, 'acme', named('in', { app: 'x' }));
  await until(() => places(rig).join() === 'acme half');
  t.deepEqual(places(rig), ['acme half']);
});

test('nothing is declared before kcp has written kind, scope and identity, nor for a type every cache has', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring({ identity: '' }));
    store.put(cached, 'builtin', { ...declaring(), spec: { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports' } });
  });
  await rig.synced();
  t.is(rig.slices.slices.length, 18);

  rig.shard.store.put(cached, 'acme', declaring());

  await until(() => rig.slices.synced.has(slice));
  t.is(rig.slices.slices.length, 19);
});

test('several ClusterCachedResources of one identity are one slice, whose sync covers them all', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring());
    for (const cluster of ['acme', 'other']) store.put(instances, cluster, named('a'));
  });
  await until(() => rig.slices.synced.has(slice));

  rig.shard.store.put(cached, 'other', declaring());
  await until(() => places(rig).join() === 'acme a,other a');
  await until(() => rig.slices.synced.has(slice));
  t.deepEqual(rig.slices.received.get(slice), ['begin', 'put a', 'end', 'begin', 'put a', 'put a', 'end']);

  rig.shard.store.put(instances, 'acme', named('b'));
  rig.shard.store.delete(instances, 'other', 'a');
  await until(() => places(rig).join() === 'acme a,acme b');

  rig.shard.store.delete(cached, 'acme', 'instances');
  await until(() => rig.slices.synced.has(slice) && places(rig).length === 0);
  t.deepEqual(rig.slices.withdrawn, []);
});

test('when one part loses its position, all parts are synced again', async (t) => {
  const rig = await machines(t, ({ store }) => {
    for (const cluster of ['acme', 'other']) {
      store.put(cached, cluster, declaring());
      store.put(instances, cluster, named('a'));
    }
  });
  await until(() => rig.slices.synced.has(slice) && places(rig).length === 2);

  await rig.shard.stop();
  rig.shard.store.delete(instances, 'acme', 'a');
  rig.shard.store.compact();
  await rig.shard.restart();

  await until(() => rig.slices.synced.has(slice) && places(rig).join() === 'other a');
  t.deepEqual(places(rig), ['other a']);
});

test('objects leave when the deletion of their ClusterCachedResource is requested, and the slice goes with it', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring());
    store.put(instances, 'acme', named('a'));
  });
  await until(() => places(rig).length === 1);

  const deleting = { finalizers: ['x'], deletionTimestamp: '2026-11-20T22:53:25Z' } as KubeObject['metadata'];
  rig.shard.store.put(cached, 'acme', declaring({ metadata: deleting }));
  await until(() => rig.slices.synced.has(slice) && places(rig).length === 0);
  t.deepEqual(rig.slices.withdrawn, []);
  t.deepEqual(rig.slices.names(sliceOf(cached)), ['instances']);

  rig.shard.store.delete(cached, 'acme', 'instances');
  await until(() => rig.slices.withdrawn.length === 1);
  t.deepEqual(rig.slices.withdrawn, [slice]);
  await until(() => rig.slices.names(sliceOf(cached)).length === 0);
});

test('a ClusterCachedResource that went while the shard was away is withdrawn with the next sync; another identity is another slice', async (t) => {
  const rig = await machines(t, ({ store }) => store.put(cached, 'acme', declaring()));
  await until(() => rig.slices.synced.has(slice));

  rig.shard.store.put(cached, 'acme', declaring({ identity: 'other' }));
  await until(() => rig.slices.synced.has(sliceOf(instances, 'other')));
  t.deepEqual(rig.slices.withdrawn, [slice]);

  await rig.shard.stop();
  rig.shard.store.delete(cached, 'acme', 'instances');
  rig.shard.store.compact();
  await rig.shard.restart();
  await until(() => rig.slices.withdrawn.length === 2);
  t.deepEqual(rig.slices.withdrawn, [slice, sliceOf(instances, 'other')]);
});
