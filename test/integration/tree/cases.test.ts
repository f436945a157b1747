/**
 * Real caches in one process, joined by real links: what happens to filtered objects when links
 * break and policies change.
 */
import { test } from '../../support/test.js';
import { sliceOf, pushedExport, pushedObject, RawPusher } from '../../support/raw-pusher.js';
import { aClusterCachedResource } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { until, type TestServer } from '../../support/test-server.js';
import { aCutLink, aTree, eventsOf, exportsOf, holds } from '../../support/test-tree.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const forwarding = (rules: string, children = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}`): string =>
  `parent: {forward: ${rules}, follow: [{types: ['*']}]}\n${children}`;

function labelled(name: string, labels: Record<string, string>, more: Record<string, unknown> = {}) {
  return pushedExport(name, { metadata: { name, uid: `uid-of-${name}`, labels, ...more } });
}

test.serial(
  '4: after a link was down, creates, deletes and recreates converge to the present, with no event for other objects',
  async (t) => {
    const tree = await aTree(t);
    const root = await tree.cache('root');
    const link = await aCutLink(t, root);
    const east = await tree.cache('east', { parent: root, urls: [link.url] });
    const amber = await RawPusher.open(east);
    await amber.sync(exports, [pushedExport('same'), pushedExport('gone'), pushedExport('again')]);
    await holds(t, root, 'again,gone,same');
    const watch = await eventsOf(t, root);

    link.down();
    amber.put(exports, [pushedExport('brief')]);
    amber.delete(exports, ['brief', 'gone', 'again']);
    await amber.acknowledged(amber.put(exports, [pushedExport('again', { spec: { anew: true } })]));
    link.up();
    await holds(t, root, 'again,same');
    await amber.acknowledged(amber.put(exports, [pushedExport('last')]));
    await holds(t, root, 'again,last,same');

    const seen = watch();
    t.false(seen.some((event) => event.endsWith(' same')));
    t.deepEqual(
      seen.filter((event) => event.endsWith(' gone')),
      ['DELETED gone'],
    );
    t.is(seen.at(-1), 'ADDED last');
    t.true(seen.includes('MODIFIED again') || seen.includes('ADDED again'));
  },
);

test.serial('5: labels and annotations that change while the link is down move objects out of the policy and into it', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const link = await aCutLink(t, root);
  const rules = `[{labels: 'tier=gold'}, {annotations: {example.io/visibility: public}}]`;
  const east = await tree.cache('east', { parent: root, urls: [link.url], config: forwarding(rules) });
  const amber = await RawPusher.open(east);
  const isPublic = { annotations: { 'example.io/visibility': 'public' } };
  await amber.sync(exports, [
    labelled('leaves', { tier: 'gold' }),
    labelled('comes', {}),
    labelled('hides', {}, isPublic),
    labelled('stays', { tier: 'gold' }),
  ]);
  await holds(t, root, 'hides,leaves,stays');
  const watch = await eventsOf(t, root);

  link.down();
  await amber.acknowledged(
    amber.put(exports, [labelled('leaves', { tier: 'tin' }), labelled('comes', {}, isPublic), labelled('hides', {})]),
  );
  link.up();
  await holds(t, root, 'comes,stays');
  await until(() => watch().length >= 3);

  t.deepEqual([...watch()].toSorted(), ['ADDED comes', 'DELETED hides', 'DELETED leaves']);
});

test.serial(
  '6: a policy that changes while its cache is up or down removes only what it no longer allows from the other end',
  async (t) => {
    const tree = await aTree(t);
    const root = await tree.cache('root');
    let config = forwarding(`[{types: ['*']}]`);
    const east = await tree.cache('east', { parent: root, config: () => config, flags: { 'policy-poll': '100ms' } });
    const amber = await RawPusher.open(east);
    await amber.sync(exports, [labelled('gold', { tier: 'gold' }), labelled('tin', { tier: 'tin' })]);
    await amber.sync(schemas, []);
    await holds(t, root, 'gold,tin');
    const watch = await eventsOf(t, root);

    config = forwarding(`[{labels: 'tier=gold'}]`);
    await holds(t, root, 'gold');
    config = forwarding(`[{types: [apiresourceschemas.apis.kcp.io]}]`);
    await holds(t, root, '');
    config = forwarding(`[{labels: 'tier'}]`);
    await holds(t, root, 'gold,tin');

    await until(() => watch().length >= 4);
    t.deepEqual([...watch()].slice(0, 2), ['DELETED tin', 'DELETED gold']);
    t.deepEqual([...watch()].slice(2).toSorted(), ['ADDED gold', 'ADDED tin']);
  },
);

test.serial('9, 16: a slice without its end removes nothing anywhere and delays no other slice of its shard', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const first = await RawPusher.open(east);
  await first.sync(exports, [pushedExport('one'), pushedExport('two')]);
  await first.sync(schemas, []);
  await holds(t, root, 'one,two');
  const second = await RawPusher.open(east, { term: 2_000 });

  second.begin(exports);
  second.put(exports, [pushedExport('one')]);
  await second.sync(
    schemas,
    [pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata: { name: 'v1.a.b', uid: 'uid-of-a' } })],
    'v1alpha1',
  );
  await until(async () => (await exportsOf(root, 'apiresourceschemas', 'v1alpha1')).join() === 'v1.a.b');

  t.deepEqual(await exportsOf(root), ['one', 'two']);
  await second.acknowledged(second.end(exports, 1));
  await holds(t, root, 'one');
});

test.serial('14: many filtered-out changes between two that pass cause no event at the other end', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root, config: forwarding(`[{labels: 'tier=gold'}]`) });
  const amber = await RawPusher.open(east);
  await amber.sync(exports, [labelled('first', { tier: 'gold' })]);
  await holds(t, root, 'first');
  const watch = await eventsOf(t, root);

  for (let i = 0; i < 10; i++)
    await amber.acknowledged(
      amber.put(
        exports,
        Array.from({ length: 100 }, (_, k) => labelled(`tin-${k}`, { tier: `tin-${i}` })),
      ),
    );
  await amber.acknowledged(amber.put(exports, [labelled('last', { tier: 'gold' })]));
  await holds(t, root, 'first,last');

  t.deepEqual(watch(), ['ADDED last']);
});

test.serial('15: a type declared at its origin reaches the other branch, and the declaration arrives first', async (t) => {
  const tree = await aTree(t);
  const rules = `[{types: [instances.machines.svm.io]}]`;
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root, config: forwarding(rules) });
  const west = await tree.cache('west', { parent: root });
  const amber = await RawPusher.open(east);
  const declarations = sliceOf('clustercachedresources', { group: 'cache.kcp.io' });
  const instances = sliceOf('instances', { group: 'machines.svm.io', identity: 'A1' });
  const instance = pushedObject({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'one', uid: 'uid-of-one' } });
  const declared = aClusterCachedResource('A1');
  const declaration = pushedObject({ ...declared, metadata: { ...(declared['metadata'] as object), uid: 'uid-of-instances' } });

  await amber.sync(declarations, [declaration], 'v1alpha1');
  await amber.sync(instances, [instance], 'v1');

  const listed = async (server: TestServer): Promise<string> =>
    (await server.client().raw('GET', '/services/cache/shards/*/clusters/*/apis/machines.svm.io/v1/instances:A1')).text;
  await until(async () => (await listed(west)).includes('"one"'));
  t.regex(await listed(root), /"one"/);
  await amber.acknowledged(amber.delete(declarations, ['instances']));
  await until(async () => !(await listed(west)).includes('"one"'));
  await amber.acknowledged(amber.put(declarations, [declaration], 'v1alpha1'));
  await amber.sync(instances, [instance], 'v1');
  await until(async () => (await listed(west)).includes('"one"'));
});

test.serial('an object that is accepted by its path arrives when the path does, moves with it, and leaves with it', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root, config: forwarding(`[{pathPrefix: 'root:tenant'}]`) });
  const amber = await RawPusher.open(east);
  const at = (name: string, path: string) =>
    pushedExport(name, { metadata: { name, uid: `uid-of-${name}`, annotations: { 'kcp.io/path': path } } });
  await amber.sync(exports, [pushedExport('one'), pushedExport('other', { cluster: 'beta' })]);
  await amber.acknowledged(amber.put(exports, [at('here', 'root:tenant:a')]));
  await holds(t, root, 'here,one');
  const watch = await eventsOf(t, root);

  await amber.acknowledged(amber.put(exports, [at('here', 'root:elsewhere')]));
  await holds(t, root, '');
  await amber.acknowledged(amber.put(exports, [at('here', 'root:tenant:b')]));
  await holds(t, root, 'here,one');
  await amber.acknowledged(amber.delete(exports, ['here']));
  await holds(t, root, 'one');
  await amber.acknowledged(amber.delete(exports, ['one']));
  await holds(t, root, '');

  const seen = (wanted: string): number => watch().filter((event) => event === wanted).length;
  // The watch may show the last delete later than a list does.
  await until(() => seen('DELETED one') >= 2);
  t.is(seen('DELETED one'), 2);
  t.is(seen('ADDED one'), 1);
});
