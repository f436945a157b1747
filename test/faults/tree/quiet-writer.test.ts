/**
 * kcp's controllers repeat the same PUT of an object that does not change. Finds a server that
 * takes such a writer for one that is away, over HTTP/1.1 or HTTP/2, on the real clock.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';

for (const http2 of [false, true]) {
  test.serial(`a shard keeps its objects just as long as a writer repeats the same PUT over HTTP/${http2 ? 2 : 1.1}`, async (t) => {
    const server = await StrataProcess.start({ flags: ['--shard-away-max=2s'] });
    t.teardown(() => server[Symbol.asyncDispose]());
    const client = server.client({ http2 });
    const created = await client.create(aPath(), anApiExport());
    const one = aPath({ name: 'one' });

    const untilMs = performance.now() + 6_000;
    while (performance.now() < untilMs) {
      const { metadata } = await client.replace(one, created);
      t.is(metadata.resourceVersion, created.metadata.resourceVersion, 'nothing changes');
      await sleep(300);
    }

    const gone = async (): Promise<boolean> => (await client.raw('GET', one)).status === 404;
    t.false(await gone());
    await until(gone, 10_000);
  });
}
