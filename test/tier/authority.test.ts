/** What a child may do to its parent, whatever it sends: over real websockets, with the certificates of both. */
import test from 'ava';
import type { StatusReport } from '../../src/domain/status.js';
import { shardName } from '../support/objects.js';
import { claim, openChild } from '../support/raw-child.js';
import { pushedExport, RawPusher, sliceOf } from '../support/raw-pusher.js';
import { aServer, type TestServer } from '../support/test-server.js';

const exports = sliceOf('apiexports');
const amber = shardName('amber');

function accepting(rules: string, others = ''): string {
  return `children: {east: {accept: ${rules}}${others}}\n`;
}

async function objectsOf(server: TestServer, resource = 'apiexports', version = 'v1alpha2'): Promise<readonly string[]> {
  const { items } = await server.client().list(`/services/cache/shards/*/clusters/*/apis/apis.kcp.io/${version}/${resource}`);
  return items.map(({ metadata }) => `${metadata.annotations?.['kcp.io/shard']} ${metadata.name}`).toSorted();
}

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

async function sideOf(server: TestServer, shard = amber): Promise<string | null | undefined> {
  return (await statusOf(server)).shards.find((each) => each.shard === shard)?.side;
}

test('a child takes no shard that its accept does not name', async (t) => {
  const server = await aServer(t, { config: accepting(`[{labels: {tier: gold}}]`) });
  const pusher = await RawPusher.open(server, { incarnation: 1_000 });
  await pusher.state(exports, [pushedExport('one'), pushedExport('two')]);

  const child = await openChild(server);
  claim(child, amber);
  child.begin(exports);
  await child.acknowledged(child.end(exports, 0));

  t.is(await sideOf(server), 'local');
  t.deepEqual(await objectsOf(server), ['amber one', 'amber two']);
});
