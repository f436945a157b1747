import { test } from '../../support/test.js';
import { reservedExtra } from '../../../src/http/impersonation.js';

test('an extra key that only kcp may grant is found in every spelling', (t) => {
  const keys = [
    'authorization.kcp.io%2fwarrant',
    'authentication.kcp.io/scopes',
    'authentication.%6bcp%2Eio%2Fcluster-name',
    'a.KCP.io',
    'a.kcp%2eio%ff',
    'a.kcp.io%zz',
  ];
  for (const key of keys) t.is(reservedExtra(['accept', `impersonate-extra-${key}`]), key);
});

test('other extra keys and other headers are not reserved', (t) => {
  t.is(
    reservedExtra([
      'impersonate-extra-scopes',
      'impersonate-extra-example.com%2fkcp-io',
      'impersonate-user',
      'x-kcp.io',
      'impersonate-extra-a.kcp%252eio',
    ]),
    undefined,
  );
});
