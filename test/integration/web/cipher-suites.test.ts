import { once } from 'node:events';
import { connect, type ConnectionOptions } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { aServer, type TestServer } from '../../support/test-server.js';

/** The cipher that both ends agree on; undefined if there is none. */
async function agreed({ url }: TestServer, options: ConnectionOptions): Promise<string | undefined> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false, ...options });
  const outcome = await once(socket, 'secureConnect').then(
    () => socket.getCipher().name,
    () => undefined,
  );
  socket.destroy();
  return outcome;
}

async function offering(t: ExecutionContext, names: string): Promise<TestServer> {
  return aServer(t, { flags: { 'tls-cipher-suites': names } });
}

const old = (ciphers: string): ConnectionOptions => ({ maxVersion: 'TLSv1.2', ciphers });
const aes128 = 'ECDHE-ECDSA-AES128-GCM-SHA256';
const aes256 = 'ECDHE-ECDSA-AES256-GCM-SHA384';

test('of TLS 1.2 only the named ciphers are offered, and TLS 1.3 stays', async (t) => {
  const server = await offering(t, 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384');

  t.is(await agreed(server, old(aes256)), aes256);
  t.is(await agreed(server, old(aes128)), undefined);
  t.regex((await agreed(server, { minVersion: 'TLSv1.3' })) ?? 'none', /^TLS_/);
  t.is((await server.client().raw('GET', '/readyz')).status, 200);
});

test('if only suites of TLS 1.3 are named, the server offers these and no older version', async (t) => {
  const server = await offering(t, 'TLS_AES_128_GCM_SHA256');

  t.is(await agreed(server, { minVersion: 'TLSv1.3' }), 'TLS_AES_128_GCM_SHA256');
  t.is(await agreed(server, { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_256_GCM_SHA384' }), undefined);
  t.is(await agreed(server, old(aes128)), undefined);
});

test('without the option OpenSSL chooses', async (t) => {
  const server = await aServer(t);

  t.is(await agreed(server, old(aes128)), aes128);
  t.is(await agreed(server, old(aes256)), aes256);
});
