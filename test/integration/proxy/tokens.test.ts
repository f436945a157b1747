/**
 * Tokens at a front door that checks them. The tests would find a token that is taken for another
 * one, an invalid token that is accepted, and a token that a backend sees.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { anInstallation, type Installation } from '../../support/proxy/a-front-door.js';
import type { Echoed } from '../../support/proxy/echo-backend.js';
import { portOf } from '../../support/proxy/serving.js';
import { TestAuthority } from '../../support/test-authority.js';
import { AnIssuer } from '../../support/tokens/an-issuer.js';
import { aJwt, aKeyPair, encoded } from '../../support/tokens/jwt.js';

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-tokens-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function flagsOf(issuer: AnIssuer, caFile: string): Record<string, string> {
  return {
    'oidc-issuer-url': issuer.url,
    'oidc-client-id': 'kcp',
    'oidc-ca-file': caFile,
    'oidc-groups-claim': 'groups',
    'oidc-signing-algs': 'ES256',
  };
}

type Asked = Readonly<{ status: number; headers: Readonly<Record<string, string | readonly string[]>> }>;

async function ask(
  { door }: Installation,
  authorization: string | undefined,
  { http2 = true, showsCertificate = false } = {},
): Promise<Asked> {
  const headers = authorization === undefined ? {} : { authorization };
  const { status, text: answered } = await door
    .client({ http2, ...(!showsCertificate && { as: null }) })
    .raw('GET', '/clusters/root/echo', { headers });
  return { status, headers: status === 200 ? (JSON.parse(answered) as Echoed).headers : {} };
}

function protocolOf(token: string): string {
  return `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
}

/** The caller as the backend sees it; the status if the backend was not asked. */
async function told(installation: Installation, token: string): Promise<unknown> {
  const { status, headers } = await ask(installation, `Bearer ${token}`);
  if (status !== 200) return status;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('x-remote-') || name === 'authorization'));
}

for (const http2 of [false, true]) {
  test(`over ${http2 ? 'HTTP/2' : 'HTTP/1.1'}, a token of the file names the user in the file; the backend sees no token and no dropped groups`, async (t) => {
    const file = join(await aFolder(t), 'tokens.csv');
    await writeFile(file, 'one,alice,7,"team,system:masters,secret"\r\n\ntwo,"b ""b""",8,\nö,carol,9\n');
    const frontDoorFlags = { 'token-auth-file': file, 'authentication-drop-groups': 'secret' };
    const installation = await anInstallation(t, { frontDoorFlags });

    const alice = await ask(installation, 'bearer one and more', { http2 });
    t.like(alice, { status: 200, headers: { 'x-remote-user': 'alice', 'x-remote-group': 'system:authenticated, team' } });
    t.is(alice.headers['authorization'], undefined);
    t.like((await ask(installation, 'Bearer two', { http2 })).headers, {
      'x-remote-user': 'b "b"',
      'x-remote-group': 'system:authenticated',
    });
    const umlaut = Buffer.from('ö').toString('latin1');
    t.like((await ask(installation, `Bearer ${umlaut}`, { http2 })).headers, { 'x-remote-user': 'carol' });
    const { asked } = installation.amber;
    for (const authorization of [undefined, 'Bearer three', 'Bearer ', 'Bearer', 'Basic one', 'one'])
      t.is((await ask(installation, authorization, { http2 })).status, 401, authorization);
    const headers = { 'sec-websocket-protocol': `${protocolOf('one')}, other` };
    t.is((await installation.door.client({ http2, as: null }).raw('GET', '/clusters/root/echo', { headers })).status, 401, 'no websocket');
    t.is(installation.amber.asked, asked);
    const reasons = installation.door.logged.filter(({ event }) => event === 'token.refused').map(({ fields }) => fields);
    t.deepEqual(reasons, [{ reason: 'nobody knows the token' }]);

    const { headers: ofBoth } = await ask(installation, 'Bearer one', { http2, showsCertificate: true });
    t.like(ofBoth, { 'x-remote-user': 'cache-client', authorization: 'Bearer one' }, 'a certificate takes precedence');
  });
}

test('a token of an issuer names the user in its claims; an invalid one is 401 and reaches no backend', async (t) => {
  const authority = new TestAuthority(await aFolder(t));
  const issuer = await AnIssuer.start(t, authority);
  const rsa = aKeyPair('second', 'RS256');
  issuer.keys = [...issuer.keys, rsa];
  const frontDoorFlags = {
    ...flagsOf(issuer, authority.certificateFile),
    'oidc-required-claim': 'org=acme',
    'oidc-groups-prefix': 'oidc:',
  };
  const installation = await anInstallation(t, { frontDoorFlags });
  const token = (claims: object = {}): string => issuer.token({ org: 'acme', groups: ['a', 'b'], jti: 'id-1', ...claims });
  const now = Math.floor(Date.now() / 1000);

  t.deepEqual(await told(installation, token()), {
    'x-remote-user': `${issuer.url}#alice`,
    'x-remote-group': 'oidc:a, oidc:b, system:authenticated',
    'x-remote-extra-authentication.kubernetes.io%2fcredential-id': 'JTI=id-1',
  });
  t.like(await told(installation, issuer.token({ org: 'acme' }, undefined, { kid: '' })), { 'x-remote-user': `${issuer.url}#alice` });
  t.like(await told(installation, token({ aud: ['other', 'kcp'], groups: 'one', nbf: now + 50 })), {
    'x-remote-group': 'oidc:one, system:authenticated',
  });

  const { asked } = installation.amber;
  const foreign = aKeyPair('first');
  const [key] = issuer.keys;
  const unsigned = `${[{ alg: 'none' }, { iss: issuer.url, aud: 'kcp', sub: 'alice', org: 'acme', exp: now + 99 }].map(encoded).join('.')}.`;
  const refused: Readonly<Record<string, string>> = {
    expired: token({ exp: now - 1 }),
    'without an end': token({ exp: undefined }),
    'an end that is a text': token({ exp: String(now + 99) }),
    'not valid yet': token({ nbf: now + 70 }),
    'a start that is a text': token({ nbf: 'now' }),
    'a nonce that is a number': token({ nonce: 1 }),
    'claims elsewhere that are a list': token({ _claim_names: ['groups'] }),
    'for nobody': token({ aud: undefined }),
    'for a list in a list': token({ aud: [['kcp']] }),
    'for another client': token({ aud: ['other'] }),
    'of another issuer': token({ iss: `${issuer.url}/` }),
    'of nobody': token({ sub: undefined }),
    'of an empty name': token({ sub: '' }),
    'a name that no header carries': token({ sub: 'a\nb' }),
    'groups that are none': token({ groups: [1] }),
    'groups that must be asked for': token({ groups: undefined, _claim_names: { groups: 'src1' } }),
    'without a required claim': token({ org: undefined }),
    'with another one': token({ org: 'ACME' }),
    'signed by somebody else': issuer.token({ org: 'acme' }, foreign),
    'signed in a way that is not allowed': issuer.token({ org: 'acme' }, rsa),
    'a key that is no key': issuer.token({ org: 'acme' }, key, { alg: 'HS256' }),
    unsigned: unsigned,
    'a critical header that nobody knows': issuer.token({ org: 'acme' }, key, { crit: ['odd'], odd: 1 }),
    'other claims under the signature': [token().split('.')[0], token({ sub: 'root' }).split('.')[1], token().split('.')[2]].join('.'),
  };
  for (const [what, each] of Object.entries(refused)) t.is(await told(installation, each), 401, what);
  t.is(installation.amber.asked, asked);
});

/** The head of the answer to a websocket request without a certificate. */
async function upgraded(t: ExecutionContext, port: number, protocols: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  t.teardown(() => socket.destroy());
  const lines = [
    'GET /clusters/root/exec HTTP/1.1',
    'Host: door',
    'Connection: Upgrade',
    'Upgrade: websocket',
    `Sec-WebSocket-Protocol: ${protocols}`,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  let head = '';
  for await (const chunk of socket) {
    head += String(chunk);
    if (head.includes('\r\n\r\n')) break;
  }
  return head;
}

test('a service account token is passed on to the shard that looks it up, and every other token is refused', async (t) => {
  const key = aKeyPair('');
  const file = join(await aFolder(t), 'sa.pub');
  await writeFile(file, key.publicKey.export({ type: 'spki', format: 'pem' }));
  const installation = await anInstallation(t, { frontDoorFlags: { 'service-account-key-file': file } });
  const token = aJwt({ iss: 'https://kcp.default.svc', sub: 'system:serviceaccount:ns:bot' }, key, { kid: undefined });

  t.deepEqual(await told(installation, token), { authorization: `Bearer ${token}` });
  t.is(await told(installation, 'other'), 401);
});

test('a service account token signed by a key of the JSON Web Key Set names its caller to the shard; any other is refused', async (t) => {
  const [key, foreign] = [aKeyPair(''), aKeyPair('')];
  const file = join(await aFolder(t), 'keys.json');
  await writeFile(file, JSON.stringify({ keys: [{ ...key.publicKey.export({ format: 'jwk' }), use: 'sig' }] }));
  const installation = await anInstallation(t, { frontDoorFlags: { 'service-account-key-file': file, 'service-account-lookup': 'false' } });
  const issuer = 'https://kcp.default.svc';
  const bound = { clusterName: 'c1', namespace: 'ns', serviceaccount: { name: 'bot', uid: '7' } };
  const claims = { iss: issuer, aud: [issuer], sub: 'system:serviceaccount:ns:bot', 'kubernetes.io': bound };

  t.like(await told(installation, aJwt(claims, key, { kid: undefined })), { 'x-remote-user': 'system:serviceaccount:ns:bot' });
  t.is(await told(installation, aJwt(claims, foreign, { kid: undefined })), 401);
});

test('a request waits for an issuer no longer than it may take', async (t) => {
  const authority = new TestAuthority(await aFolder(t));
  const issuer = await AnIssuer.start(t, authority);
  issuer.answers = () => new Promise(() => {});
  const flags = { 'request-timeout': '1s', 'headers-timeout': '1s' };
  const installation = await anInstallation(t, { frontDoorFlags: flagsOf(issuer, authority.certificateFile), flags });

  t.is(await told(installation, issuer.token()), 504);
});

test("a browser's websocket carries its token in a subprotocol, which the backend does not see", async (t) => {
  const file = join(await aFolder(t), 'tokens.csv');
  await writeFile(file, 'one,alice,7\n');
  const installation = await anInstallation(t, { frontDoorFlags: { 'token-auth-file': file } });
  const { door, amber } = installation;
  const open = (protocols: string): Promise<string> => upgraded(t, door.port, protocols);

  t.regex(
    await open(`${protocolOf('one')}, v4.channel.k8s.io`),
    /^HTTP\/1\.1 101 [^]*X-User: alice\r\n[^]*X-Protocols: v4\.channel\.k8s\.io\r\n/i,
  );
  const { upgrades } = amber;
  for (const protocols of [
    protocolOf('one'),
    `${protocolOf('two')}, v4.channel.k8s.io`,
    'v4.channel.k8s.io',
    `${protocolOf('one')}=`,
    `${protocolOf('one')},${protocolOf('one')}`,
  ])
    t.regex(await open(protocols), /^HTTP\/1\.1 401 /, protocols);
  t.is(amber.upgrades, upgrades);
});

test('a webhook is asked about tokens that nothing else knows, and receives no others', async (t) => {
  const folder = await aFolder(t);
  const authority = new TestAuthority(folder);
  const { certificate: cert, key } = authority.issue({ user: 'webhook', groups: [], hosts: ['127.0.0.1'], usages: ['server'] });
  const asked: unknown[] = [];
  const server = createServer(
    { cert, key, ca: await readFile(authority.certificateFile), requestCert: true },
    async (request, response) => {
      const { apiVersion, kind, spec } = JSON.parse(await text(request)) as { apiVersion: string; kind: string; spec: { token: string } };
      asked.push([request.method, request.url, spec.token]);
      const user = { username: `user of ${spec.token}`, groups: ['a', 'system:masters'], extra: { 'Example.org/a': ['é'] } };
      response.end(JSON.stringify({ apiVersion, kind, status: { authenticated: spec.token.startsWith('good'), user } }));
    },
  );
  const port = await portOf(t, server);
  const client = authority.master;
  const kubeconfig = join(folder, 'webhook.kubeconfig');
  const user = { 'client-certificate': client.certificateFile, 'client-key': client.keyFile };
  const cluster = { server: `https://127.0.0.1:${port}/authenticate`, 'certificate-authority': authority.certificateFile };
  const named = { 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'w', user: 'u' } }] };
  await writeFile(kubeconfig, JSON.stringify({ ...named, clusters: [{ name: 'w', cluster }], users: [{ name: 'u', user }] }));
  await writeFile(join(folder, 'tokens.csv'), 'one,alice,7\n');
  const frontDoorFlags = { 'token-auth-file': join(folder, 'tokens.csv'), 'authentication-token-webhook-config-file': kubeconfig };
  const installation = await anInstallation(t, { frontDoorFlags });

  t.like(await told(installation, 'one'), { 'x-remote-user': 'alice' });
  t.deepEqual(asked, []);
  t.deepEqual(await told(installation, 'good'), {
    'x-remote-user': 'user of good',
    'x-remote-group': 'a, system:authenticated',
    'x-remote-extra-%45xample.org%2fa': Buffer.from('é').toString('latin1'),
  });
  t.is(await told(installation, 'bad'), 401);
  t.like(await told(installation, 'good'), { 'x-remote-user': 'user of good' });
  t.deepEqual(asked, [
    ['POST', '/authenticate', 'good'],
    ['POST', '/authenticate', 'bad'],
  ]);
});
