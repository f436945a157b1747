/**
 * A ping waits behind the bytes in TCP's buffers, so a server with the fault took a slow reader for
 * dead.
 */
import { test } from '../support/test.js';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { createServer, createConnection, type AddressInfo } from 'node:net';
import { aPath, anApiExport } from '../support/objects.js';
import { aServer } from '../support/test-server.js';

const bytesPerSecond = 250_000; // 2 Mbit/s

test('with default pings, a client on a link of 2 Mbit/s reads a list of 9 MB to its end', async (t) => {
  t.timeout(100_000);
  const server = await aServer(t, { flags: { 'request-timeout': '5m' } });
  const text = 'x'.repeat(250_000);
  for (let i = 0; i < 36; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
  // A link that passes on this many bytes a second, and no more.
  const link = createServer((client) => {
    const target = createConnection({ port: server.port, host: '127.0.0.1' });
    for (const each of [client, target]) each.on('error', () => {}).on('close', () => (client.destroy(), target.destroy()));
    client.pipe(target);
    target.pause();
    const timer = setInterval(() => {
      const piece = target.read(bytesPerSecond / 20) ?? target.read();
      if (piece !== null) client.write(piece as Buffer);
    }, 50);
    target.on('readable', () => {});
    target.on('close', () => clearInterval(timer));
  });
  link.listen(0, '127.0.0.1');
  await once(link, 'listening');
  t.teardown(() => link.close());
  const session = connect(`https://127.0.0.1:${(link.address() as AddressInfo).port}`, {
    cert: server.master.certificate,
    key: server.master.key,
    rejectUnauthorized: false,
    settings: { initialWindowSize: 4 * 1024 * 1024 },
  });
  t.teardown(() => session.destroy());
  session.on('error', () => {});
  await once(session, 'connect');
  session.setLocalWindowSize(1 << 30); // like Go's client
  const began = performance.now();
  const stream = session.request({ ':path': aPath() });
  let bytes = 0;
  stream.on('data', (piece: Buffer) => (bytes += piece.length));
  stream.on('error', (error) => t.log(String(error)));
  await once(stream, 'close').catch(() => {});
  const seconds = (performance.now() - began) / 1000;
  t.true(bytes > 9_000_000, `ended after ${bytes} bytes and ${seconds.toFixed(1)} s: ${(bytes / seconds / 1000).toFixed()} kB/s`);
});
