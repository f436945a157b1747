import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { answerHeaders, requestHeaders, type Identity } from '../../../src/proxy/forwarded-headers.js';
import { identityOf, passedGroups } from '../../../src/proxy/identity.js';

const names = { user: 'x-remote-user', group: 'x-remote-group', extraPrefix: 'x-remote-extra-' };
const alice: Identity = {
  user: 'alice',
  groups: ['system:authenticated', 'team'],
  extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=ab'] },
};

function forwarded(rawHeaders: readonly string[], identity: Identity | 'nobody' = alice) {
  return requestHeaders(
    { rawHeaders, authority: 'front:6443', clientAddress: '10.0.0.7', identity: identity === 'nobody' ? undefined : identity },
    names,
  );
}

const everyGroup = { passed: [], dropped: [] };

/** The identity of a caller whose certificate has these names. */
function asked(user: string, groups: readonly string[]): Identity | 'untrusted' | undefined {
  const socket = { getPeerX509Certificate: () => ({ fingerprint256: 'AB:CD' }) };
  return identityOf({ user, groups }, { socket, rawHeaders: [] } as never, everyGroup);
}

/** The identity that an authenticating proxy asserts by these headers. */
function asserted(rawHeaders: readonly string[]): Identity | undefined {
  const identity = identityOf({ user: 'shard', groups: [], isAuthenticatingProxy: true }, { rawHeaders } as never, everyGroup);
  return identity === 'untrusted' ? undefined : identity;
}

test('a backend receives the caller, the caller’s address, and the requested authority', (t) => {
  t.deepEqual(
    forwarded([
      'Host',
      'front:6443',
      'Accept',
      'application/json',
      'Accept-Encoding',
      'gzip',
      'User-Agent',
      'kubectl',
      'Impersonate-User',
      'bob',
    ]),
    {
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'kubectl',
      'impersonate-user': 'bob',
      'x-forwarded-for': '10.0.0.7',
      ':authority': 'front:6443',
      'x-remote-user': 'alice',
      'x-remote-group': ['system:authenticated', 'team'],
      'x-remote-extra-authentication.kubernetes.io%2fcredential-id': ['X509SHA256=ab'],
    },
  );
});

test('a key of extra is escaped if it cannot be the name of a header', (t) => {
  const identity = { user: 'alice', groups: [], extra: { 'a(b)/C d': ['1'] } };
  const headers = requestHeaders({ rawHeaders: [], authority: 'a', clientAddress: '10.0.0.7', identity }, names);
  t.deepEqual(
    Object.keys(headers).filter((name) => name.startsWith(names.extraPrefix)),
    ['x-remote-extra-a%28b%29%2f%43%20d'],
  );
});

test('a client’s own identity headers never reach a backend, whoever the client is and however they are spelled', (t) => {
  const said = [
    'X-Remote-User',
    'x-remote-USER',
    'X-Remote-Group',
    'X-Remote-Uid',
    'X-Remote-Extra-Scopes',
    'x-remote-extra-authentication.kcp.io%2fx',
    'X_Remote_User',
    'x-remote_group',
  ];
  const raw = said.flatMap((name) => [name, 'root']);
  t.deepEqual(forwarded(raw, 'nobody'), { 'x-forwarded-for': '10.0.0.7', ':authority': 'front:6443' });
  t.notRegex(JSON.stringify(forwarded(raw)), /root/);
  const own = requestHeaders(
    {
      rawHeaders: ['X-User', 'root', 'X-Extra-A', 'root', 'X-Remote-User', 'root'],
      authority: 'a',
      clientAddress: 'b',
      identity: undefined,
    },
    { user: 'x-user', group: 'x-group', extraPrefix: 'x-extra-' },
  );
  t.notRegex(JSON.stringify(own), /root/);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.mixedCase(fc.constantFrom(...said)), fc.string()), { maxLength: 1_000 }), (lines) => {
      t.deepEqual(Object.keys(forwarded(lines.flat(), 'nobody')), ['x-forwarded-for', ':authority']);
    }),
    { numRuns: rounds(50) },
  );
});

test('a header may have any name that JavaScript treats specially, and text that is no header does no harm', (t) => {
  for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']) {
    const headers = forwarded([name, 'a', name, 'b'], 'nobody');
    t.true(Object.hasOwn(headers, name.toLowerCase()));
    t.deepEqual(Object.entries(headers).find(([each]) => each === name.toLowerCase())?.[1], ['a', 'b']);
    t.true(Object.hasOwn(answerHeaders(200, Object.fromEntries([[name, 'a']])), name));
  }
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string())), (lines) => {
      t.is(typeof forwarded(lines.flat(), 'nobody')['x-forwarded-for'], 'string');
    }),
  );
});

test('names with other letters are written as their UTF-8, and never become other names', (t) => {
  const odd = asked('Ųoot', ['ųystem:masters', 'ýes']);
  const written = (value: unknown) => Buffer.from(String(value), 'latin1').toString();
  if (odd === 'untrusted' || odd === undefined) return t.fail('the certificate names somebody');
  const headers = forwarded([], odd);
  t.is(written(headers['x-remote-user']), 'Ųoot');
  t.is(written(headers['x-remote-group']), 'system:authenticated,ýes,ųystem:masters');
  t.notRegex(JSON.stringify(headers), /"(?:root|system:masters)"/);
});

test('a certificate names nobody if no header can carry its names unchanged', (t) => {
  const identity = (user: string, ...groups: string[]) => asked(user, groups);
  t.like(identity('alice', 'team'), { user: 'alice', groups: ['system:authenticated', 'team'] });
  for (const name of [' admin', 'admin ', 'a\nb', 'a\rb', '\u0000', '\u0085', '\u2028x'.trim() === '\u2028x' ? 'a\u0007' : '\u2028x', '']) {
    t.is(identity(name), 'untrusted', JSON.stringify(name));
    t.is(identity('alice', name), 'untrusted', JSON.stringify(name));
  }
  const withoutCertificate = { socket: { getPeerX509Certificate: () => undefined }, rawHeaders: [] };
  t.is(identityOf({ user: 'alice', groups: [] }, withoutCertificate as never, { passed: [], dropped: [] }), undefined);
});

test('an authenticating proxy names the caller as servers of Kubernetes read it', (t) => {
  const raw = [
    'X-Remote-User',
    'zo\u00c3\u00ab',
    'x-remote-user',
    'root',
    'X-Remote-Group',
    'team',
    'X-Remote-Group',
    '',
    'x-remote-group',
    'system:masters',
  ];
  raw.push('X-Remote-Extra-Authentication.kcp.io%2fScopes', 'cluster:a', 'x-remote-extra-authentication.kcp.io/scopes', 'cluster:b');
  raw.push('X-Remote-Extra-%zz', 'odd', 'X-Remote-Extra-__proto__', 'own', 'X-Remote-Uid', '7', 'X_Remote_User', 'root');
  const identity = asserted(raw);
  t.like(identity, { user: 'zo\u00c3\u00ab', groups: ['system:authenticated', 'team'] });
  t.deepEqual(Object.entries(identity?.extra ?? {}), [
    ['authentication.kcp.io/scopes', ['cluster:a', 'cluster:b']],
    ['%zz', ['odd']],
    ['__proto__', ['own']],
  ]);
  const headers = forwarded(raw, identity ?? 'nobody');
  t.is(headers['x-remote-user'], 'zo\u00c3\u00ab');
  t.deepEqual(headers['x-remote-extra-authentication.kcp.io%2fscopes'], ['cluster:a', 'cluster:b']);
  t.deepEqual(headers['x-remote-extra-%25zz'], ['odd']);
  t.notRegex(JSON.stringify(headers), /"root"|masters|uid/);
});

test('an authenticating proxy that names no user authenticates nobody, and an anonymous caller stays unauthenticated', (t) => {
  for (const raw of [[], ['X-Remote-Group', 'team'], ['X-Remote-User', ''], ['X-Remote-User', '', 'X-Remote-User', 'root']])
    t.is(asserted(raw), undefined, raw.join(' '));
  t.deepEqual(asserted(['X-Remote-User', 'system:anonymous', 'X-Remote-Group', 'system:unauthenticated'])?.groups, [
    'system:unauthenticated',
  ]);
  t.deepEqual(asserted(['X-Remote-User', 'system:anonymous'])?.groups, []);
  t.deepEqual(asserted(['X-Remote-User', 'alice', 'X-Remote-Group', 'system:unauthenticated'])?.groups, ['system:unauthenticated']);
});

test('headers about one connection are not forwarded, in either direction', (t) => {
  const raw = [
    'Connection',
    'keep-alive, X-Hop',
    'Keep-Alive',
    '5',
    'X-Hop',
    'a',
    'Proxy-Authorization',
    'b',
    'TE',
    'trailers',
    'Transfer-Encoding',
    'chunked',
    'Upgrade',
    'h2c',
    'HTTP2-Settings',
    'c',
    'Expect',
    '100-continue',
    'X-Stays',
    'd',
  ];
  t.deepEqual(forwarded(raw, 'nobody'), { 'x-stays': 'd', 'x-forwarded-for': '10.0.0.7', ':authority': 'front:6443' });
  t.deepEqual(
    answerHeaders(200, {
      ':status': '200',
      connection: 'close, x-hop',
      'keep-alive': '5',
      'x-hop': 'a',
      'transfer-encoding': 'chunked',
      'content-type': 'text/plain',
      'set-cookie': ['a', 'b'],
      'x-gone': undefined,
    }),
    { 'content-type': 'text/plain', 'set-cookie': ['a', 'b'] },
  );
});

test('repeated header lines stay repeated, and addresses are appended', (t) => {
  const headers = forwarded([
    'Accept',
    'a',
    'Accept',
    'b',
    'X-Forwarded-For',
    '1.1.1.1',
    'x-forwarded-for',
    '2.2.2.2',
    'Content-Length',
    '7',
  ]);
  t.deepEqual(headers['accept'], ['a', 'b']);
  t.is(headers['x-forwarded-for'], '1.1.1.1, 2.2.2.2, 10.0.0.7');
  t.is(headers['content-length'], '7');
});

test('groups that only kcp itself may be in are never passed on, and others as the options say', (t) => {
  const all = [
    'team',
    'system:masters',
    'system:kcp:admin',
    'system:kcp:logical-cluster-admin',
    'system:kcp:external-logical-cluster-admin',
    'system:kcp:initializer:x',
    'system:kcp:terminator:y',
    'team',
  ];
  t.deepEqual(passedGroups(all, everyGroup), ['system:kcp:admin', 'system:kcp:external-logical-cluster-admin', 'team']);
  t.deepEqual(passedGroups(all, { passed: ['system:*'], dropped: ['system:kcp:e*'] }), ['system:kcp:admin']);
  t.deepEqual(passedGroups(all, { passed: ['system:masters'], dropped: [] }), [], 'no option passes them on');
});
