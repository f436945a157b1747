import { test } from '../support/test.js';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../support/objects.js';
import { RawHttp1 } from '../support/raw-http1.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { openTls } from '../support/raw-tls.js';
import { aServer } from '../support/test-server.js';

test('a server with many half-done requests stops within its grace period', async (t) => {
  const server = await aServer(t, {
    flags: { 'shutdown-grace': '2s', 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '768KiB' },
  });
  for (let i = 0; i < 8; i += 1)
    await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(200_000) } }));
  const stuck = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 0 });
  for (let i = 0; i < 20; i += 1) stuck.request('GET', `${aPath()}${i % 2 === 0 ? '' : '?watch=true'}`);
  const polite = await RawHttp2.open({ port: server.port, as: server.master });
  const watch = polite.request('GET', `${aPath()}?watch=true`);
  const body = polite.request('POST', aPath(), { headers: { 'content-type': 'application/json' }, ends: false });
  polite.data(body.id, Buffer.from('{'));
  const h1 = await RawHttp1.open({ port: server.port, as: server.master });
  h1.head('POST', aPath(), { 'content-type': 'application/json', 'content-length': '100' });
  h1.send('{');
  const h1watch = await RawHttp1.open({ port: server.port, as: server.master });
  h1watch.head('GET', `${aPath()}?watch=true`);
  const silent = connect({ host: '127.0.0.1', port: server.port }).on('error', () => {});
  const halfHello = connect({ host: '127.0.0.1', port: server.port }).on('error', () => {});
  halfHello.write(Buffer.from('16030100f0', 'hex'));
  const idle = await openTls({ port: server.port, as: server.master });
  t.teardown(() => {
    stuck.destroy();
    polite.destroy();
    h1.destroy();
    h1watch.destroy();
    silent.destroy();
    halfHello.destroy();
    idle.tls.destroy();
  });
  await sleep(500);
  const began = performance.now();
  const stopped = server.stop();
  await sleep(700);
  t.log(
    'watch ended',
    watch.came.at(-1),
    'goaway',
    polite.goaway?.code,
    'h1 watch answered',
    h1watch.answers.length,
    'idle ended',
    idle.tls.readableEnded || idle.tls.destroyed,
  );
  await stopped;
  const ms = performance.now() - began;
  t.true(ms < 3500, `${ms} ms`);
  t.is(watch.came.at(-1), 'end');
});

test('a watch that gets no room beside a half-sent body of its connection ends after its timeout', async (t) => {
  const server = await aServer(t, { flags: { 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '768KiB' } });
  for (let i = 0; i < 8; i += 1)
    await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(200_000) } }));
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  const body = client.request('POST', aPath(), { headers: { 'content-type': 'application/json' }, ends: false });
  client.data(body.id, Buffer.from('{'));
  await sleep(200);
  const watch = await client.answered(client.request('GET', `${aPath()}?watch=true&timeoutSeconds=1`), 5_000);
  t.true(watch.isWhole);
  t.is(watch.bytes, 0);
});
