import { test } from '../../support/test.js';
import type { KubeObject } from '../../support/kube-client.js';
import { fill, shardObjects } from '../../support/shard-stand-in-objects.js';
import { identityOf } from '../../support/shard-stand-in.js';
import { until } from '../../support/test-server.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { anAgent, sliceOf, type AgentRig } from './an-agent.js';

const exports = 'apiexports.apis.kcp.io';
const roles = 'clusterroles.rbac.authorization.k8s.io';
const replicate = { 'internal.kcp.io/replicate': 'x' };

function named(name: string, metadata: KubeObject['metadata'] = {}, rest: Readonly<Record<string, unknown>> = {}): KubeObject {
  return { ...rest, metadata: { ...metadata, name } };
}

async function untilNames(rig: AgentRig, slice: string, names: readonly string[]): Promise<void> {
  await until(() => JSON.stringify(rig.slices.names(slice)) === JSON.stringify(names)).catch((error: unknown) => {
    throw new Error(`${slice} holds ${rig.slices.names(slice).join(' ')}, not ${names.join(' ')}`, { cause: error });
  });
}

for (const how of ['watching', 'lists'] as const) {
  test(`a recorded shard is synced as a whole by ${how}, and each object equals what kcp pushes`, async (t) => {
    const objects = await shardObjects('root');
    const rig = await anAgent(t, {
      prepare: (shard) => {
        shard.refusesWatchList = how === 'lists';
        for (const { resource, cluster, object } of objects) shard.store.put(resource, cluster, object);
      },
    });

    await rig.synced();

    t.is(rig.slices.slices.length, 18);
    const held = rig.slices.slices.flatMap((slice) => Object.values(rig.slices.objects(slice)));
    t.is(held.length, objects.length);
    for (const { text, sourceVersion } of held) {
      const pushed = JSON.parse(text) as KubeObject;
      t.truthy(pushed.kind);
      t.truthy(pushed.apiVersion);
      t.is(pushed.metadata.resourceVersion, undefined);
      t.is(pushed.metadata.annotations?.['cache.kcp.io/original-resource-version'], sourceVersion);
      t.is(pushed.metadata.annotations?.['cache.kcp.io/original-resource-UID'], pushed.metadata.uid);
    }
  });
}

test('the whole recording fits into a stand-in', async (t) => {
  const rig = await anAgent(t);

  t.true((await fill(rig.shard, 'shard-1')) > 0);
});

test('creates, updates and deletes follow the sync', async (t) => {
  const rig = await anAgent(t, { prepare: ({ store }) => store.put(exports, 'root', named('a')) });
  await rig.synced();

  rig.shard.store.put(exports, 'root', named('b'));
  rig.shard.store.put(exports, 'acme', named('a', {}, { spec: 1 }));
  rig.shard.store.delete(exports, 'root', 'a');
  rig.shard.store.put(exports, 'root', named('b', {}, { spec: 2 }));

  await until(() => rig.slices.received.get(sliceOf(exports))?.length === 7);
  t.deepEqual(rig.slices.received.get(sliceOf(exports)), ['begin', 'put a', 'end', 'put b', 'put a', 'delete a', 'put b']);
  t.deepEqual(Object.keys(rig.slices.objects(sliceOf(exports))), ['acme||a', 'root||b']);
});

test('only marked objects of marked types are pushed, and one that loses its mark is deleted', async (t) => {
  const rig = await anAgent(t, {
    prepare: ({ store }) => {
      store.put(roles, 'root', named('marked', { annotations: replicate }));
      store.put(roles, 'root', named('plain'));
    },
  });
  await rig.synced();
  t.deepEqual(rig.slices.received.get(sliceOf(roles)), ['begin', 'put marked', 'end']);

  rig.shard.store.put(roles, 'root', named('marked'));
  rig.shard.store.put(roles, 'root', named('plain', { annotations: replicate }));

  await untilNames(rig, sliceOf(roles), ['plain']);
});

test('an object that is being deleted keeps its last state while finalizers hold it, also in a sync', async (t) => {
  const deleting = { finalizers: ['x'], deletionTimestamp: '2026-11-20T22:53:25Z' } as KubeObject['metadata'];
  const rig = await anAgent(t, { prepare: ({ store }) => store.put(exports, 'root', named('held', {}, { spec: 1 })) });
  await rig.synced();

  rig.shard.store.put(exports, 'root', named('held', deleting, { spec: 2 }));
  rig.shard.store.put(exports, 'root', named('next'));
  await untilNames(rig, sliceOf(exports), ['held', 'next']);
  t.false(rig.slices.received.get(sliceOf(exports))?.includes('keep held'));

  await rig.shard.stop();
  rig.shard.store.delete(exports, 'root', 'next');
  rig.shard.store.put(exports, 'root', named('next'));
  rig.shard.store.compact();
  await rig.shard.restart();
  await until(() => rig.slices.received.get(sliceOf(exports))?.includes('keep held') === true);
  await rig.synced();
  t.is((JSON.parse(rig.slices.objects(sliceOf(exports))['root||held']?.text ?? '{}') as { spec?: number }).spec, 1);

  rig.shard.store.delete(exports, 'root', 'held');
  await untilNames(rig, sliceOf(exports), ['next']);
});

test('system clusters are pushed only if they are named', async (t) => {
  const rig = await anAgent(t, {
    systemClusters: ['system:shard'],
    prepare: ({ store }) => {
      for (const cluster of ['root', 'system:shard', 'system:admin']) store.put(exports, cluster, named('a'));
    },
  });
  await rig.synced();

  rig.shard.store.delete(exports, 'system:admin', 'a');
  rig.shard.store.put(exports, 'root', named('b'));

  await until(() => rig.slices.names(sliceOf(exports)).includes('b'));
  t.deepEqual(Object.keys(rig.slices.objects(sliceOf(exports))), ['root||a', 'root||b', 'system:shard||a']);
  t.false(rig.slices.received.get(sliceOf(exports))?.includes('delete a'));
});

test("types bound from kcp's own exports are requested with the shard's identity, which is looked up again after a 404", async (t) => {
  const rig = await anAgent(t);
  await rig.synced();
  const lookups = (): number => rig.asked('configmaps/apiexport-identity-cache').length;
  const before = lookups();

  t.true(rig.asked('shards').every((path) => path.includes(`/shards:${identityOf('shards.core.kcp.io')}?`)));
  t.true(rig.asked('workspacetypes').every((path) => path.includes(`/workspacetypes:${identityOf('tenancy.kcp.io')}?`)));

  await rig.shard.stop();
  rig.shard.store.hide('shards.core.kcp.io');
  await rig.shard.restart();
  await until(() => lookups() > before);
  t.true(lookups() > before);
});

test('a type that the shard does not serve is waited for, logged once, and pushed when the shard serves it', async (t) => {
  const clock = new ManualClock();
  const absent = 'apiconversions.apis.kcp.io';
  const rig = await anAgent(t, { clock, prepare: ({ store }) => store.hide(absent) });
  await until(() => {
    clock.advance(2_000);
    return rig.slices.synced.size === 17 && rig.asked('apiconversions').length >= 8;
  });
  t.is(rig.events('source.type.absent').length, 1);
  t.false(rig.slices.synced.has(sliceOf(absent)));

  rig.shard.store.serve({ group: 'apis.kcp.io', version: 'v1alpha1', resource: 'apiconversions', kind: 'APIConversion', identity: '' });
  await until(() => {
    clock.advance(2_000);
    return rig.slices.synced.has(sliceOf(absent));
  });
  t.is(rig.events('source.type.served').length, 1);
});
