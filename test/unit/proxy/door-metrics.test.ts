import { test } from '../../support/test.js';
import { tlsErrorTypeOf } from '../../../src/proxy/door-metrics.js';

function anError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

const cases: readonly (readonly [code: string, type: ReturnType<typeof tlsErrorTypeOf>])[] = [
  ['SELF_SIGNED_CERT_IN_CHAIN', 'unknown_ca'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unknown_ca'],
  ['CERT_HAS_EXPIRED', 'expired_cert'],
  // Go has one reason for both.
  ['CERT_NOT_YET_VALID', 'expired_cert'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'hostname_mismatch'],
  ['CERT_REVOKED', 'other'],
  ['INVALID_PURPOSE', 'other'],
  ['EPROTO', 'cipher_mismatch'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'cipher_mismatch'],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'cipher_mismatch'],
  ['ECONNREFUSED', undefined],
  ['ECONNRESET', undefined],
  ['EPROTONOSUPPORT', undefined],
];

for (const [code, type] of cases) {
  test(`an error of the code ${code} counts as ${type ?? 'no TLS error'}, also as the cause of another`, (t) => {
    t.is(tlsErrorTypeOf(anError(code)), type);
    t.is(tlsErrorTypeOf(new Error('not sent', { cause: new Error('again', { cause: anError(code) }) })), type);
  });
}

test('a value that is no Error counts as no TLS error, and a cycle of causes ends', (t) => {
  const round = new Error('round');
  round.cause = round;

  for (const error of [undefined, 'CERT_HAS_EXPIRED', { code: 'CERT_HAS_EXPIRED' }, round]) t.is(tlsErrorTypeOf(error), undefined);
});
