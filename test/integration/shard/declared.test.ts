import { setTimeout } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { KubeObject } from '../../support/kube-client.js';
import type { StandInType } from '../../support/shard-stand-in-store.js';
import { until } from '../../support/test-server.js';
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
  name?: string;
}>;

function declaring({ identity = 'hash', labels, metadata = {}, resource = 'instances', name = 'instances' }: Declared = {}): KubeObject {
  const annotations = { 'cache.kcp.io/resource-kind': 'Instance', 'cache.kcp.io/resource-scope': 'Cluster' };
  return {
    metadata: { ...metadata, name, annotations },
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

/** The stand-in refuses requests for instances of that logical cluster. */
function failing(cluster: string, status: number): AgentRig['shard']['instead'] {
  return ({ pathname }, answer) => {
    if (!pathname.startsWith(`/clusters/${cluster}/`) || !pathname.endsWith('/instances')) return false;
    answer.writeHead(status).end();
    return true;
  };
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

test('labels that no object can have select nothing, whatever they would mean in a URL', async (t) => {
  const never: readonly Readonly<Record<string, string>>[] = [
    { app: 'x,tier' },
    { 'app in (x,y),tier': 'y' },
    { app: 'a b' },
    { '!app': '' },
    { app: '=x' },
  ];
  const rig = await machines(t, ({ store }) => {
    for (const [at, labels] of never.entries()) {
      store.put(cached, `acme-${at}`, declaring({ labels }));
      store.put(instances, `acme-${at}`, named('in', { app: 'x', tier: 'y' }));
      store.put(instances, `acme-${at}`, named('bare'));
    }
    store.put(cached, 'acme', declaring({ labels: { app: 'x' } }));
    store.put(instances, 'acme', named('in', { app: 'x', tier: 'y' }));
  });
  await until(() => rig.slices.synced.has(slice));

  t.deepEqual(places(rig), ['acme in']);
});

test('nothing is declared before kcp has written kind, scope and identity, nor for a type that every cache has', async (t) => {
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

test('ClusterCachedResources of several logical clusters with one identity are one slice; each logical cluster is synced alone', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring());
    for (const cluster of ['acme', 'other']) store.put(instances, cluster, named('a'));
  });
  await until(() => rig.slices.synced.has(slice));

  rig.shard.store.put(cached, 'other', declaring());
  await until(() => places(rig).join() === 'acme a,other a');
  await until(() => rig.slices.isConnected(slice));
  const first = ['begin', 'begin acme', 'put a', 'end acme', 'end'];
  t.deepEqual(rig.slices.received.get(slice), [...first, 'begin other', 'put a', 'end other'], 'acme is not read again');

  rig.shard.store.put(instances, 'acme', named('b'));
  rig.shard.store.delete(instances, 'other', 'a');
  await until(() => places(rig).join() === 'acme a,acme b');

  rig.shard.store.delete(cached, 'acme', 'instances');
  await until(() => places(rig).length === 0);
  t.deepEqual(rig.slices.withdrawn, []);
  t.true(rig.slices.synced.has(slice), 'the rest of the slice stays synced');
});

test('two ClusterCachedResources of one logical cluster select together: an object leaves when neither selects it any more', async (t) => {
  const rig = await machines(t, ({ store }) => {
    store.put(cached, 'acme', declaring({ name: 'one', labels: { a: '1' } }));
    store.put(cached, 'acme', declaring({ name: 'two', labels: { b: '2' } }));
    store.put(instances, 'acme', named('both', { a: '1', b: '2' }));
    store.put(instances, 'acme', named('first', { a: '1' }));
    store.put(instances, 'acme', named('neither', { a: '2' }));
  });
  await until(() => rig.slices.synced.has(slice));
  t.deepEqual(places(rig), ['acme both', 'acme first']);

  rig.shard.store.put(instances, 'acme', named('both', { b: '2' }));
  rig.shard.store.put(instances, 'acme', named('first', {}));
  await until(() => places(rig).join() === 'acme both');
  rig.shard.store.put(instances, 'acme', named('both', { a: '1', b: '2' }));
  rig.shard.store.delete(cached, 'acme', 'two');
  rig.shard.store.put(instances, 'acme', named('late', { a: '1' }));
  await until(() => places(rig).join() === 'acme both,acme late');
  await until(() => rig.slices.isConnected(slice));
  t.true(rig.asked('instances').at(-1)?.includes('labelSelector=a%3D1'), 'the remaining one selects it');
  t.deepEqual(
    rig.slices.received.get(slice)?.filter((word) => word === 'begin'),
    ['begin'],
  );
});

test('a logical cluster that cannot be read does not delay others, nor their updates', async (t) => {
  const rig = await machines(t, ({ store }) => {
    for (const cluster of ['acme', 'bold']) {
      store.put(cached, cluster, declaring());
      store.put(instances, cluster, named('a'));
    }
  });
  await until(() => rig.slices.synced.has(slice) && rig.slices.isConnected(slice));

  for (const status of [403, 404, 500]) {
    rig.shard.instead = failing('bold', status);
    rig.shard.cut();
    await until(() => !rig.slices.isConnected(slice));
    rig.shard.store.put(instances, 'acme', named(`at-${status}`));
    rig.shard.store.delete(instances, 'acme', 'a');
    await until(() => places(rig).includes(`acme at-${status}`) && !places(rig).includes('acme a'));
    t.true(places(rig).includes('bold a'), 'objects that cannot be read stay');
    rig.shard.store.put(instances, 'acme', named('a'));
    rig.shard.instead = () => false;
    await until(() => rig.slices.isConnected(slice));
  }
  t.deepEqual(
    rig.slices.received.get(slice)?.filter((word) => word === 'begin'),
    ['begin'],
  );
});

test('a logical cluster that was never readable keeps the slice from counting as synced, but nothing else from being sent', async (t) => {
  const rig = await machines(t, (shard) => {
    const { store } = shard;
    shard.instead = failing('bold', 403);
    for (const cluster of ['acme', 'bold']) {
      store.put(cached, cluster, declaring());
      store.put(instances, cluster, named('a'));
    }
  });
  await until(() => places(rig).join() === 'acme a');
  rig.shard.store.put(instances, 'acme', named('b'));
  await until(() => places(rig).join() === 'acme a,acme b');
  t.false(rig.slices.synced.has(slice));
  t.false(rig.slices.isConnected(slice));

  rig.shard.instead = () => false;
  await until(() => rig.slices.synced.has(slice) && rig.slices.isConnected(slice));
  t.deepEqual(places(rig), ['acme a', 'acme b', 'bold a']);
});

test('after the history of a shard is compacted, each logical cluster is read again, and objects deleted since are removed', async (t) => {
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

  await until(() => places(rig).join() === 'other a');
  await until(() => rig.slices.isConnected(slice));
  t.deepEqual(places(rig), ['other a']);
});

test('a hundred edits of one logical cluster in five seconds do not affect others, and take effect two seconds after the last', async (t) => {
  const clusters = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
  const rig = await machines(t, ({ store }) => {
    for (const cluster of clusters) {
      store.put(cached, cluster, declaring({ labels: { edit: '0' } }));
      store.put(instances, cluster, named('a', { edit: '0' }));
    }
    for (let edit = 0; edit <= 100; edit += 1) store.put(instances, 'c6', named(`of-${edit}`, { edit: `${edit}` }));
  });
  await until(() => rig.slices.synced.has(slice) && rig.slices.isConnected(slice));
  const before = rig.asked('instances').length;
  const firstMs = performance.now();

  for (let edit = 1; edit <= 100; edit += 1) {
    rig.shard.store.put(cached, 'c6', declaring({ labels: { edit: `${edit}` } }));
    await setTimeout(50);
    if (edit % 20 !== 0) continue;
    rig.shard.store.put(instances, 'c1', named(`while-${edit}`, { edit: '0' }));
    // Another logical cluster still gets its updates.
    await until(() => places(rig).includes(`c1 while-${edit}`));
  }
  const lastMs = performance.now();
  await until(() => rig.slices.isConnected(slice) && places(rig).includes('c6 of-100'));
  const tookMs = performance.now() - lastMs;

  t.true(tookMs < 8_000, `${tookMs.toFixed(0)} ms after the last edit`);
  t.deepEqual(
    places(rig).filter((place) => place.startsWith('c6')),
    ['c6 of-100'],
  );
  const asked = rig.asked('instances').slice(before);
  // At most two in ten seconds.
  const askedMax = 2 * (Math.ceil((performance.now() - firstMs) / 10_000) + 1);
  t.true(asked.length >= 1 && asked.length <= askedMax, `${asked.length} requests`);
  t.true(asked.every((path) => path.startsWith('/clusters/c6/')));
  t.deepEqual(
    rig.slices.received.get(slice)?.filter((word) => word === 'begin'),
    ['begin'],
  );
});

test('objects leave when the deletion of their ClusterCachedResource is requested, and the slice is withdrawn', async (t) => {
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

test('a ClusterCachedResource that was deleted while the shard was away is withdrawn with the next sync; another identity is another slice', async (t) => {
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
