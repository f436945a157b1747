/**
 * Real caches in one process, joined by real links: where shards have their origin, and how they
 * move and are removed.
 */
import { test } from '../../support/test.js';
import { sliceOf, pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { hurried, until, type TestServer } from '../../support/test-server.js';
import { aCutLink, aTree, eventsOf, holds } from '../../support/test-tree.js';

const exports = aSlice();

test.serial(
  '7, 8: a shard that moves between children and to the parent keeps its objects without an event; its old origin returns and follows',
  async (t) => {
    const tree = await aTree(t);
    const root = await tree.cache('root');
    const link = await aCutLink(t, root);
    const east = await tree.cache('east', { parent: root, urls: [link.url] });
    const west = await tree.cache('west', { parent: root });
    const before = await RawPusher.open(east);
    await before.sync(exports, [pushedExport('one'), pushedExport('two')]);
    await holds(t, west, 'one,two');
    const watch = await eventsOf(t, root);

    link.down();
    const moved = await RawPusher.open(west, { term: 2_000 });
    await moved.sync(exports, [pushedExport('one'), pushedExport('three')]);
    await holds(t, root, 'one,three');
    link.up();
    await holds(t, east, 'one,three');
    t.is(await before.farewell(), 'fenced');
    await until(() => watch().length >= 2);
    t.deepEqual([...watch()].toSorted(), ['ADDED three', 'DELETED two']);

    const again = await RawPusher.open(root, { term: 3_000 });
    await again.sync(exports, [pushedExport('one')]);
    t.is(await moved.farewell(), 'fenced');
    await holds(t, west, 'one');
    await holds(t, east, 'one');
    await until(() => watch().length >= 3);
    t.deepEqual([...watch()].toSorted(), ['ADDED three', 'DELETED three', 'DELETED two']);
  },
);

test.serial('13: the same key on two shards of different branches stays two objects everywhere', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const west = await tree.cache('west', { parent: root });
  const amber = await RawPusher.open(east);
  const birch = await RawPusher.open(west, { name: 'birch' });
  const ofBirch = sliceOf('apiexports', { shard: 'birch' });

  await amber.sync(exports, [pushedExport('one')]);
  await birch.sync(ofBirch, [pushedExport('one')]);

  for (const cache of [root, east, west]) await holds(t, cache, 'one,one');
  await birch.acknowledged(birch.delete(ofBirch, ['one']));
  for (const cache of [root, east, west]) await holds(t, cache, 'one');
});

test.serial('a shard that is removed at the root leaves every cache, each object once, and its pusher stays out', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const west = await tree.cache('west', { parent: root });
  const amber = await RawPusher.open(east);
  await amber.sync(exports, [pushedExport('one'), pushedExport('two')]);
  await holds(t, west, 'one,two');
  const watch = await eventsOf(t, west);

  const { status } = await root.client().raw('DELETE', '/services/cache/shards/amber');

  t.is(status, 200);
  for (const cache of [root, east, west]) await holds(t, cache, '');
  t.is(await amber.farewell(), 'fenced');
  await until(() => watch().length >= 2);
  t.deepEqual([...watch()].toSorted(), ['DELETED one', 'DELETED two']);
});

test.serial(
  'plain writes count as a full sync once they have stopped for a while; then the other end removes what was not rewritten',
  async (t) => {
    const clock = hurried(50);
    const tree = await aTree(t);
    const root = await tree.cache('root', { clock });
    const east = await tree.cache('east', { parent: root, clock });
    const client = east.client();

    t.is((await client.raw('POST', aPath(), { body: anApiExport() })).status, 201);
    await holds(t, root, 'one');
    t.is((await client.raw('POST', aPath(), { body: anApiExport({ name: 'two' }) })).status, 201);
    await holds(t, root, 'one,two');
    const refused = await root.client().raw('POST', aPath(), { body: anApiExport({ name: 'three' }) });

    t.is(refused.status, 409);
    t.regex(refused.text, /child east/);
    t.is((await client.raw('DELETE', aPath({ name: 'one' }))).status, 200);
    await holds(t, root, 'two');
  },
);

test.serial(
  'a plain writer takes over a shard that had no pusher for a while; its old origin follows, and takes it back in turn',
  async (t) => {
    const clock = hurried(50);
    const tree = await aTree(t);
    const root = await tree.cache('root', { clock, flags: { 'parent-hold': '1s' } });
    const east = await tree.cache('east', { parent: root, clock, flags: { 'parent-hold': '1s' } });
    const written = async (at: TestServer, name: string): Promise<boolean> =>
      (await at.client().raw('POST', aPath(), { body: anApiExport({ name }) })).status === 201;
    t.true(await written(east, 'one'));
    await holds(t, root, 'one');

    t.false(await written(root, 'two'));
    await until(() => written(root, 'two'));
    await holds(t, east, 'one,two');

    t.false(await written(east, 'three'));
    await until(() => written(east, 'three'));
    await holds(t, root, 'one,three,two');
  },
);
