/**
 * Which ids a child may use, over real websockets: never the id of another neighbour, and invented
 * ids must not fill memory or the store.
 */
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { Database } from '../../../src/store/sqlite/driver.js';
import { linksMax } from '../../../src/domain/push.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { greetingChild, openChild } from '../../support/raw-child.js';
import type { RawPusher } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aCutLink, aTree } from '../../support/test-tree.js';

const accepting = `children: {'*': {accept: [{shards: ['*']}]}}\n`;

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

async function idsOf(server: TestServer): Promise<readonly string[]> {
  return ((await statusOf(server)).tree?.children ?? []).map(({ name, cacheId }) => `${name} ${cacheId}`);
}

async function leave(server: TestServer, child: RawPusher, name: string): Promise<void> {
  child.socket.terminate();
  await until(async () => (await statusOf(server)).tree?.children.find((each) => each.name === name)?.connection.kind === 'away');
}

/** The reason in the bye that refuses the child. */
async function refusal(server: TestServer, name: string, id: string): Promise<string> {
  const child = await greetingChild(server, name, id);
  const { reason } = await farewell(child);
  return reason;
}

async function farewell(child: RawPusher) {
  for (;;) {
    const frame = await child.next();
    if (frame.kind === 'bye') return frame;
  }
}

test('a child may not use the last id of another child, connected or not, nor this cache’s own id, nor an empty one', async (t) => {
  const server = await aServer(t, { config: accepting });
  const west = await openChild(server, 'west', 'id-1');

  t.is(await refusal(server, 'east', 'id-1'), 'forbidden');
  await leave(server, west, 'west');
  t.is(await refusal(server, 'east', 'id-1'), 'forbidden');
  const again = await server.restart({ config: accepting });
  t.teardown(() => again.close());
  t.is(await refusal(again, 'east', 'id-1'), 'forbidden');
  t.is(await refusal(again, 'east', (await statusOf(again)).cache.id), 'loop');
  t.is(await refusal(again, 'east', ''), 'protocol');
  await openChild(again, 'west', 'id-1');

  t.deepEqual(await idsOf(again), ['west id-1']);
});

test('a child that was refused because of its id is not a neighbour: completeness does not wait for it', async (t) => {
  const server = await aServer(t, { config: accepting });
  const west = await openChild(server, 'west', 'id-1');
  await refusal(server, 'east', 'id-1');
  await leave(server, west, 'west');
  t.false((await statusOf(server)).tree?.complete);

  t.is((await server.client().raw('DELETE', '/services/cache/caches/west')).status, 200);

  await until(async () => (await statusOf(server)).tree?.complete === true);
  t.deepEqual(await idsOf(server), []);
});

test('an id that a child no longer uses is free, so one child cannot block more than one id', async (t) => {
  const server = await aServer(t, { config: accepting });
  for (let i = 0; i < 5; i++) await openChild(server, 'east', `id-of-${i}`);

  await openChild(server, 'west', 'id-of-0');
  t.is(await refusal(server, 'north', 'id-of-4'), 'forbidden');

  t.deepEqual(await idsOf(server), ['east id-of-4', 'west id-of-0']);
});

test('a child with the id of its parent’s parent is disconnected once that parent connects, and does not block the connection', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root', { config: accepting });
  const rootId = (await statusOf(root)).cache.id;
  const link = await aCutLink(t, root);
  link.down();
  const middle = await tree.cache('middle', { parent: root, urls: [link.url], config: accepting });
  const early = await openChild(middle, 'east', rootId);

  link.up();

  t.is((await farewell(early)).reason, 'loop');
  t.is(await refusal(middle, 'east', rootId), 'loop');
  await until(async () => (await statusOf(middle)).tree?.hops === 1);
  t.is((await statusOf(middle)).tree?.parent?.cacheId, rootId);
});

largeTest('ids that a child invents fill neither the store nor memory', async (t) => {
  const server = await aServer(t, { config: accepting });

  for (let i = 0; i < 300; i++) (await openChild(server, 'east', `made-up-${i}`)).socket.terminate();
  await openChild(server, 'east', 'the-last');

  t.deepEqual(await idsOf(server), ['east the-last']);
  await server.stop();
  const database = new Database(server.databaseFile);
  const tables = `SELECT m.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name = 'cache_id'`;
  const rows = database
    .prepare<[], string>(tables)
    .pluck()
    .all()
    .flatMap((table) => database.prepare<[], string>(`SELECT cache_id FROM ${table}`).pluck().all());
  database.close();
  t.deepEqual(rows, ['the-last']);
});

test('once the maximum of children is remembered, a new child is refused and known ones are admitted', async (t) => {
  const server = await aServer(t, { config: accepting });
  await openChild(server, 'west');
  await server.stop();
  const database = new Database(server.databaseFile);
  const insert = database.prepare(`INSERT INTO links (neighbour, cache_id, position) VALUES (?, ?, '')`);
  database.transaction(() => {
    for (let i = 1; i < linksMax; i++) insert.run(`child/c${i}`, `id-${i}`);
  })();
  database.close();
  const again = await server.restart({ config: accepting });
  t.teardown(() => again.close());

  const { reason, message } = await farewell(await greetingChild(again, 'new'));

  t.deepEqual([reason, message], ['forbidden', 'this cache remembers too many children: forget some with strata caches forget']);
  await openChild(again, 'west', 'another-disk');
  t.is((await idsOf(again)).length, linksMax);
});
