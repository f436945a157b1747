/**
 * A list takes room for `--list-chunk-bytes-max`, and an object may be larger. Finds one connection
 * of a shard that so fills the room of all callers.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

const mebibyte = 1024 * 1024;

for (const watch of ['', '?watch=true'])
  test(`default limits: 95 unread ${watch === '' ? 'lists' : 'watches'} of one connection of a shard buffer less than 30 MiB, and keep no master out`, async (t) => {
    const server = await aServer(t);
    const shard = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
    const text = 'x'.repeat(2_900_000);
    for (let i = 0; i < 3; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
    const before = process.memoryUsage().rss;
    const client = await RawHttp2.open({ port: server.port, as: shard, windowBytes: 0 });
    t.teardown(() => client.destroy());
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    for (let i = 0; i < 95; i += 1)
      client.request('GET', `${aPath()}${watch === '' ? '?' : `${watch}&`}includeObject=Object`, { headers: { accept } });
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const began = performance.now();
    const master = await server
      .client()
      .raw('GET', aPath({ name: 'n1' }), { timeoutMs: 10_000 })
      .catch((error: unknown) => ({ status: String(error) }));
    const ms = performance.now() - began;
    t.log(`grown by ${((process.memoryUsage().rss - before) / mebibyte).toFixed()} MiB`);
    const buffered = await server.metric('strata_buffered_bytes').catch(() => NaN);
    t.is(master.status, 200, `a master's get after ${ms.toFixed()} ms`);
    t.true(buffered < 30 * mebibyte, `${(buffered / mebibyte).toFixed()} MiB buffered, 8 of them for the requests`);
  });
