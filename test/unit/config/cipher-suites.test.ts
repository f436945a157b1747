import { getCiphers } from 'node:tls';
import { test } from '../../support/test.js';
import { cipherSuites } from '../../../src/config/options/cipher-suites.js';

const { read } = cipherSuites({ flag: 'tls-cipher-suites', yaml: 'tls.cipherSuites', help: '' });
const tls13 = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';

/**
 * From Go 1.26, tls.CipherSuites and tls.InsecureCipherSuites, and the two that component-base
 * adds.
 */
const namesOfGo = `
  TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305 TLS_RSA_WITH_AES_128_CBC_SHA
  TLS_RSA_WITH_AES_256_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA256 TLS_RSA_WITH_AES_128_GCM_SHA256 TLS_RSA_WITH_AES_256_GCM_SHA384
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256`
  .trim()
  .split(/\s+/);
const brokenNamesOfGo =
  'TLS_RSA_WITH_RC4_128_SHA TLS_RSA_WITH_3DES_EDE_CBC_SHA TLS_ECDHE_ECDSA_WITH_RC4_128_SHA TLS_ECDHE_RSA_WITH_RC4_128_SHA TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA'.split(
    ' ',
  );

test('OpenSSL offers every cipher suite of Go under the name that it gets, or the suite is refused as broken', (t) => {
  const offered = getCiphers();
  for (const name of namesOfGo) {
    const reading = read(name);
    if (reading.kind === 'wrong') t.fail(`${name}: ${reading.problem}`);
    else for (const each of reading.value?.split(':') ?? []) t.true(offered.includes(each.toLowerCase()), each);
  }
  for (const name of brokenNamesOfGo) t.deepEqual(read(name), { kind: 'wrong', problem: `"${name}" is broken, and not offered here` });
});

test('CIPHER-1 an unknown suite is an error that quotes a bounded part of it, and no suite is silently skipped', (t) => {
  t.deepEqual(read('AES128-SHA'), { kind: 'wrong', problem: 'there is no cipher suite "AES128-SHA"' });
  for (const text of [
    'tls_aes_128_gcm_sha256',
    ' TLS_AES_128_GCM_SHA256',
    'TLS_AES_128_GCM_SHA256:ALL',
    'ALL',
    '@SECLEVEL=0',
    'constructor',
  ])
    t.is(read(text).kind, 'wrong', text);
  t.true(JSON.stringify(read('x'.repeat(10_000))).length < 200);
  for (const given of ['"', 7, ['TLS_AES_128_GCM_SHA256']]) t.is(read(given).kind, 'wrong');
});

test('CIPHER-2 the suites of TLS 1.3 stay if none is named, and only the named ones are offered otherwise', (t) => {
  const value = (text: string) => read(text);
  t.deepEqual(value(''), { kind: 'read', value: undefined });
  t.deepEqual(value('TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'), { kind: 'read', value: `${tls13}:ECDHE-RSA-AES256-GCM-SHA384` });
  t.deepEqual(value('TLS_AES_256_GCM_SHA384'), { kind: 'read', value: 'TLS_AES_256_GCM_SHA384' });
});
