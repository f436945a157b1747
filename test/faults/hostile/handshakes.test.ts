/**
 * Wrong TLS handshakes and malformed HTTP/1.1. Finds a server that accepts them, or takes one
 * malformed request for two (request smuggling). Also finds a server that reads the peer's
 * certificate for each request, not once for a connection.
 */
import { test } from '../../support/test.js';
import { once } from 'node:events';
import { constants } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { processorMs } from '../../support/fastest.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { openTls } from '../../support/raw-tls.js';
import { TestServer } from '../../support/test-server.js';

const starting = (async () => {
  const server = await TestServer.start({ flags: { 'handshake-timeout': '1s', 'headers-timeout': '1s', 'request-timeout': '3s' } });
  await server.client().create(aPath(), anApiExport());
  return server;
})();

test.after.always('the server serves, and has logged no fault', async (t) => {
  const server = await starting;
  t.is((await server.client().raw('GET', '/livez')).status, 200);
  t.deepEqual(
    server.logged.filter(({ level }) => level === 'error'),
    [],
  );
  await server.close();
});

/** Resolves with the negotiated version of TLS, or with the code of the error. */
async function handshake(options: ConnectionOptions): Promise<string> {
  const { port } = await starting;
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  try {
    const agreed = once(socket, 'secureConnect').then(() => socket.getProtocol() ?? 'none');
    return await agreed;
  } catch (error) {
    return String((error as { code?: string }).code);
  } finally {
    socket.destroy();
  }
}

test.serial('TLS below 1.2 is refused, 1.2 and 1.3 are accepted', async (t) => {
  const old = { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  for (const maxVersion of ['TLSv1', 'TLSv1.1'] as const) t.regex(await handshake({ ...old, maxVersion }), /PROTOCOL_VERSION|ECONNRESET/);
  t.is(await handshake({ maxVersion: 'TLSv1.2' }), 'TLSv1.2');
  t.is(await handshake({}), 'TLSv1.3');
});

test.serial(
  'a client cannot renegotiate over TLS 1.2: no certificate comes late, and no connection costs the server a second handshake',
  async (t) => {
    const server = await starting;
    const { master } = server;
    const socket = connectTls({
      host: '127.0.0.1',
      port: server.port,
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.2',
      ALPNProtocols: ['http/1.1'],
      cert: master.certificate,
      key: master.key,
      secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
    });
    t.teardown(() => socket.destroy());
    await once(socket, 'secureConnect');
    let renegotiations = 0;
    socket.on('error', () => {});

    const untilMs = performance.now() + 3_000;
    while (performance.now() < untilMs && !socket.destroyed && renegotiations < 50) {
      const result = await new Promise<Error | null | 'closed'>((resolve) => {
        socket.once('close', () => resolve('closed'));
        setTimeout(() => resolve('closed'), 1_000);
        socket.renegotiate({ rejectUnauthorized: false }, resolve);
      });
      if (result !== null) break;
      renegotiations += 1;
    }

    t.true(renegotiations <= 3, `${renegotiations} renegotiations`);
    t.is((await server.client().raw('GET', '/livez')).status, 200);
  },
);

test.serial('a connection that does not finish its handshake in time, or sends something else, is closed', async (t) => {
  const { port } = await starting;
  const sockets = [
    Buffer.alloc(0),
    Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    Buffer.from('1603010200010001fc0303', 'hex'),
    Buffer.alloc(5_000, 0x16),
  ].map((bytes) => {
    const socket = connectTcp({ host: '127.0.0.1', port }).on('error', () => {});
    if (bytes.length > 0) socket.write(bytes);
    return socket.resume();
  });

  const closed = await Promise.all(
    sockets.map((socket) => Promise.race([once(socket, 'close').then(() => true), sleep(5_000).then(() => false)])),
  );

  for (const socket of sockets) socket.destroy();
  t.deepEqual(closed, [true, true, true, true]);
});

test.serial('a connection without ALPN is served HTTP/1.1, and one that sends the preface of HTTP/2 there is closed', async (t) => {
  const server = await starting;
  const { tls } = await openTls({ port: server.port, as: server.master });
  let read = '';
  tls.on('data', (bytes: Buffer) => (read += bytes.toString()));
  tls.write('GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await once(tls, 'close');
  t.regex(read, /^HTTP\/1\.1 200 /);

  const prefaceOverHttp1 = await RawHttp1.open({ port: server.port });
  prefaceOverHttp1.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  await prefaceOverHttp1.until(() => prefaceOverHttp1.isClosed, 'the end of a connection that changes its protocol');
  t.false(prefaceOverHttp1.answers.some(({ status }) => status === 200));
  prefaceOverHttp1.destroy();
});

/**
 * Sent after each malformed request; answered 200 only if the server misreads the bytes before it.
 */
const smuggled = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n';

for (const [what, bytes] of [
  ['a length and chunks', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['two lengths', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\n`],
  ['a length with a sign', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n`],
  ['a length with a comma', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 35\r\n\r\n`],
  ['a length in hexadecimal', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\n`],
  ['an unknown transfer encoding', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  ['chunked that is not last', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
  ['a space before the colon', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  ['a folded header', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`],
  ['a chunk size that is none', `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n0\r\n\r\n`],
  ['a line that ends in a lone CR', `GET /livez HTTP/1.1\rHost: x\r\r`],
  ['a version from the future', `GET /livez HTTP/9.9\r\nHost: x\r\n\r\n`],
  ['a NUL in a header', `GET /livez HTTP/1.1\r\nHost: x\r\nx: a\0b\r\n\r\n`],
] as const) {
  test.serial(`HTTP/1.1 with ${what} ends its connection, and nothing after it is a request`, async (t) => {
    const server = await starting;
    const client = await RawHttp1.open({ port: server.port, as: server.master });
    t.teardown(() => client.destroy());

    client.send(bytes + smuggled);
    await client.until(() => client.isClosed, 'the end of the connection', 5_000);

    t.false(
      client.answers.some(({ text }) => text.includes('strata_')),
      'the metrics must not be answered',
    );
    t.false(client.unread.includes('strata_'));
    t.true(
      client.answers.every(({ status }) => status >= 400),
      client.answers.map(({ status }) => status).join(),
    );
  });
}

/**
 * The processor time this thread spends on a request, client and server together, in microseconds.
 */
async function cpuOf(ask: () => Promise<unknown>): Promise<number> {
  const before = processorMs();
  for (let i = 0; i < requestsPerRound; i += 1) await ask();
  return ((processorMs() - before) * 1000) / requestsPerRound;
}

const requestsPerRound = 200;
const rounds = 6;
/**
 * Reading the certificate for each request makes it 2.5 times as expensive on any machine; looking
 * up the caller does not.
 */
const callerFactorMax = 2;

test.serial('over HTTP/2 the server reads the certificate once for a connection, not for each request', async (t) => {
  const server = await starting;
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  const paths = { health: '/livez', version: '/version' } as const;
  const least = { health: Infinity, version: Infinity };

  // Health needs no caller; the version does. The minimum of several rounds has the least noise of
  // the machine.
  for (let round = 0; round < rounds; round += 1)
    for (const what of ['health', 'version'] as const)
      least[what] = Math.min(least[what], await cpuOf(() => client.ask('GET', paths[what])));

  t.log(`${least.health.toFixed()} µs without a look at who asks, ${least.version.toFixed()} µs with`);
  t.true(least.version < least.health * callerFactorMax, `${least.version} µs against ${least.health}`);
});
