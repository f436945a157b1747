/** A server whose disk is full, as its clients and its operator see it (F4). */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { aServer, hurried, until } from '../support/test-server.js';
import { fill, filler, smallDisk } from '../store/small-disk.js';

const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

function anExport(name: string): unknown {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: { filling: 'x'.repeat(300_000) } };
}

for (const http2 of [false, true]) {
  test(`while the disk is full writes over HTTP/${http2 ? 2 : 1.1} are answered 503 and reads go on; the server is not ready, lives, and heals by itself`, async (t) => {
    const disk = smallDisk(t);
    if (disk === undefined) {
      t.pass();
      return;
    }
    const server = await aServer(t, { flags: { 'data-directory': join(disk, 'data') }, clock: hurried(10) });
    const client = server.client({ http2 });
    const statusOf = async (endpoint: string): Promise<number> => (await client.raw('GET', endpoint)).status;
    await client.create(path, anExport('first'));
    t.is(await statusOf('/readyz'), 200);

    fill(disk);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => client.raw('POST', path, { body: anExport(`n${i}`) })));
    const refused = answers.filter(({ status }) => status !== 201);
    t.true(refused.length > 0);
    for (const { status, text } of refused) {
      t.is(status, 503);
      t.like(JSON.parse(text), { kind: 'Status', reason: 'ServiceUnavailable', message: 'the store cannot write (SQLITE_FULL)' });
    }
    t.is(await statusOf('/readyz'), 500);
    t.is(await statusOf('/livez'), 200, 'a restart would not help');
    t.is((await client.list(path)).items.length, 1 + answers.length - refused.length);

    rmSync(join(disk, filler));
    await until(async () => (await statusOf('/readyz')) === 200, 10_000);

    t.truthy((await client.create(path, anExport('healed'))).metadata.resourceVersion);
    t.deepEqual(server.logged.filter(({ event }) => event === 'store.writes-again').length, 1);
  });
}
