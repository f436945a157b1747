import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { test } from './test.js';
import { TcpProxy } from './tcp-proxy.js';

/** A client and its target with the proxy between them, and what each has received. */
async function aConnection(t: ExecutionContext) {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const proxy = await TcpProxy.start(typeof address === 'object' && address !== null ? address.port : 0);
  const client = createConnection({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  const [target] = (await once(server, 'connection')) as [Socket];
  t.teardown(async () => {
    client.destroy();
    target.destroy();
    server.close();
    await proxy.close();
  });
  return { proxy, client, target, atClient: received(client), atTarget: received(target) };
}

function received(socket: Socket): { text: string } {
  const all = { text: '' };
  socket.on('error', () => {});
  socket.on('data', (bytes) => (all.text += bytes.toString()));
  return all;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

test('bytes keep their order when the delay becomes shorter', async (t) => {
  const { proxy, client, atTarget } = await aConnection(t);

  proxy.delay(100);
  client.write('slow ');
  await sleep(20);
  proxy.heal();
  client.write('quick');
  await until(() => atTarget.text.length === 10);

  t.is(atTarget.text, 'slow quick');
});

test('a half-open connection passes bytes one way only, and is reset when the network heals', async (t) => {
  const { proxy, client, target, atClient, atTarget } = await aConnection(t);

  proxy.blackhole('up');
  client.write('lost');
  target.write('passes');
  await until(() => atClient.text === 'passes');
  t.is(atTarget.text, '');
  proxy.heal();
  await until(() => client.destroyed);

  t.is(atTarget.text, '');
});

test('a network that stalls loses nothing', async (t) => {
  const { proxy, client, atTarget } = await aConnection(t);

  proxy.stall();
  await sleep(20);
  client.write('held up');
  await sleep(50);
  t.is(atTarget.text, '');
  proxy.heal();
  await until(() => atTarget.text === 'held up');

  t.deepEqual(proxy.passed, { up: 7, down: 0 });
});

test('a narrow network passes no more than its rate, and loses nothing', async (t) => {
  const { proxy, client, atTarget } = await aConnection(t);
  const text = 'x'.repeat(600_000);

  proxy.narrow(1_000_000);
  const startedMs = performance.now();
  client.write(text);
  await until(() => atTarget.text.length === text.length);

  const tookMs = performance.now() - startedMs;
  t.true(tookMs > 450 && tookMs < 5_000, `${tookMs} ms`);
});

test('refused connections are reset; later ones go to the port to which the proxy was redirected', async (t) => {
  const { proxy } = await aConnection(t);
  const other = createServer((socket) => socket.on('error', () => {}).end('other'));
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.teardown(() => other.close());
  const address = other.address();

  proxy.refuse();
  const refused = createConnection({ port: proxy.port, host: '127.0.0.1' });
  await t.throwsAsync(once(refused, 'end'), { code: 'ECONNRESET' });
  proxy.heal();
  proxy.redirect(typeof address === 'object' && address !== null ? address.port : 0);
  const later = createConnection({ port: proxy.port, host: '127.0.0.1' });
  const seen = received(later);
  await once(later, 'close');

  t.is(seen.text, 'other');
});

test('a process that cuts a connection while it is shutting down can exit', async (t) => {
  const script = `
    import { createServer, createConnection, Socket } from 'node:net';
    import { TcpProxy } from ${JSON.stringify(new URL('./tcp-proxy.js', import.meta.url).href)};
    const server = createServer((socket) => socket.on('error', () => {}).resume());
    server.listen(0, '127.0.0.1', async () => {
      const proxy = await TcpProxy.start(server.address().port);
      const client = createConnection({ port: proxy.port, host: '127.0.0.1' });
      client.on('error', () => {});
      const { end } = Socket.prototype;
      Socket.prototype.end = function (...all) {
        const ended = Reflect.apply(end, this, all);
        // A shutdown lasts for one turn of the event loop.
        if (this !== client) proxy.cut();
        return ended;
      };
      client.write('x');
      setTimeout(() => client.end(), 100);
      client.on('close', () => server.close() && proxy.close());
    });`;

  await t.notThrowsAsync(promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 10_000 }));
});
