/**
 * A piece of a list is as large as an object. A client that steadily reads less than one piece
 * within `--send-timeout` must not be cut.
 */
import { test } from '../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../support/objects.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { aServer } from '../support/test-server.js';

for (const what of ['list', 'watch'])
  test(`a client that reads a ${what} slowly but steadily is not cut`, async (t) => {
    const server = await aServer(t, { flags: { 'send-timeout': '1s', 'request-timeout': '60s' } });
    const text = 'x'.repeat(2_900_000);
    for (let i = 0; i < 2; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
    const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 100_000, silent: true });
    t.teardown(() => client.destroy());
    const stream = client.request('GET', what === 'list' ? aPath() : `${aPath()}?watch=true&timeoutSeconds=6`);
    for (let at = 0; at < 32 && !stream.isOver; at += 1) {
      await sleep(200);
      client.windowUpdate(0, 200_000);
      client.windowUpdate(stream.id, 200_000);
    }
    await sleep(500);
    t.true(stream.bytes > 5_800_000, `it came as ${stream.came.slice(-3).join(', ')} after ${stream.bytes} bytes`);
  });
