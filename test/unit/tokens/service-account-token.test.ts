/**
 * Tokens of service accounts. Finds a token that is accepted although it is foreign, expired, for
 * another audience, or bound to nothing, and checks the extra fields of the identity.
 */
import { generateKeyPairSync, createHash } from 'node:crypto';
import { test } from '../../support/test.js';
import { parseServiceAccountKeys, ServiceAccountTokens, serviceAccountTokensOfShards } from '../../../src/tokens/service-account-token.js';
import { InvalidToken } from '../../../src/tokens/token-user.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aJwt, aKeyPair, type TestKey } from '../../support/tokens/jwt.js';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const issuer = 'https://kcp.default.svc';
const nowMs = 1_800_000_000_000;
const now = nowMs / 1_000;

/** With the key id that kcp gives it. */
function withId(key: TestKey): TestKey {
  const id = createHash('sha256')
    .update(key.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
  return { ...key, id };
}

function pemOf({ publicKey }: TestKey): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString();
}

const [first, second, foreign] = [withId(aKeyPair('', 'RS256')), withId(aKeyPair('')), withId(aKeyPair(''))];
const tokens = new ServiceAccountTokens({
  keys: parseServiceAccountKeys(pemOf(first) + pemOf(second)),
  issuers: [issuer],
  audiences: [issuer],
  wallMs: () => nowMs,
});

const bound = { clusterName: 'c1', namespace: 'ns', serviceaccount: { name: 'bot', uid: '7' } };
const claims = {
  iss: issuer,
  aud: [issuer],
  sub: 'system:serviceaccount:ns:bot',
  exp: now + 60,
  iat: now,
  nbf: now,
  'kubernetes.io': bound,
};
const extra = { 'authentication.kcp.io/cluster-name': ['c1'], 'authentication.kcp.io/scopes': ['cluster:c1'] };
const bot = { user: 'system:serviceaccount:ns:bot', groups: ['system:serviceaccounts', 'system:serviceaccounts:ns'], extra };
const legacy = {
  iss: 'kubernetes/serviceaccount',
  sub: bot.user,
  'kubernetes.io/serviceaccount/namespace': 'ns',
  'kubernetes.io/serviceaccount/service-account.name': 'bot',
  'kubernetes.io/serviceaccount/service-account.uid': '7',
  'kubernetes.io/serviceaccount/secret.name': 'bot-token',
  'kubernetes.io/serviceaccount/clusterName': 'c1',
};

test('a token of each key names its service account and its logical cluster', async (t) => {
  t.deepEqual(await tokens.read(aJwt(claims, first)), bot);
  t.deepEqual(await tokens.read(aJwt(claims, second)), bot);
  t.deepEqual(await tokens.read(aJwt(claims, second, { kid: undefined })), bot);
  t.deepEqual(await tokens.read(aJwt({ ...claims, aud: undefined, exp: undefined }, first)), bot);
  t.deepEqual(await tokens.read(aJwt(legacy, first)), bot);
});

test('the Pod and the node that a token is bound to are in the identity, as kube-apiserver has it', async (t) => {
  const place = { pod: { name: 'p', uid: '1' }, node: { name: 'n', uid: '2' } };
  const found = await tokens.read(aJwt({ ...claims, jti: 'id-1', 'kubernetes.io': { ...bound, ...place } }, first));

  t.deepEqual(found?.extra, {
    ...extra,
    'authentication.kubernetes.io/credential-id': ['JTI=id-1'],
    'authentication.kubernetes.io/pod-name': ['p'],
    'authentication.kubernetes.io/pod-uid': ['1'],
    'authentication.kubernetes.io/node-name': ['n'],
    'authentication.kubernetes.io/node-uid': ['2'],
  });
});

const refused: Readonly<Record<string, string>> = {
  'of a key that is not known': aJwt(claims, foreign),
  'of another key than it says': aJwt(claims, { ...foreign, id: first.id }),
  'of one key that names another': aJwt(claims, { ...first, id: second.id }),
  'that has expired': aJwt({ ...claims, exp: now - 61 }, first),
  'that is not valid yet': aJwt({ ...claims, nbf: now + 61 }, first),
  'that is made in the future': aJwt({ ...claims, iat: now + 61 }, first),
  'for others': aJwt({ ...claims, aud: ['vault'] }, first),
  'for what is no text': aJwt({ ...claims, aud: [1] }, first),
  'of no logical cluster': aJwt({ ...claims, 'kubernetes.io': { ...bound, clusterName: undefined } }, first),
  'of no namespace': aJwt({ ...claims, 'kubernetes.io': { ...bound, namespace: '' } }, first),
  'of no name': aJwt({ ...claims, 'kubernetes.io': { ...bound, serviceaccount: null } }, first),
  'with a Pod that is a text': aJwt({ ...claims, 'kubernetes.io': { ...bound, pod: 'p' } }, first),
  'with a uid that is a number': aJwt({ ...claims, 'kubernetes.io': { ...bound, serviceaccount: { name: 'bot', uid: 7 } } }, first),
  'with an end that is a text': aJwt({ ...claims, exp: String(now + 60) }, first),
  'with an id that is a number': aJwt({ ...claims, jti: 1 }, first),
  'of a Secret, of another subject': aJwt({ ...legacy, sub: 'system:serviceaccount:ns:root' }, first),
  'of a Secret without a name': aJwt({ ...legacy, 'kubernetes.io/serviceaccount/secret.name': '' }, first),
  'of a Secret, of no logical cluster': aJwt({ ...legacy, 'kubernetes.io/serviceaccount/clusterName': undefined }, first),
};

for (const [what, token] of Object.entries(refused))
  test(`a token ${what} is refused`, async (t) => {
    await t.throwsAsync(tokens.read(token), { instanceOf: InvalidToken });
  });

test('a difference of a minute between two clocks does not matter', async (t) => {
  for (const times of [{ exp: now - 59 }, { nbf: now + 59 }, { iat: now + 59 }])
    t.deepEqual(await tokens.read(aJwt({ ...claims, ...times }, first)), bot);
});

test('a token of another issuer is left to other readers', async (t) => {
  for (const iss of ['https://other', undefined, 7]) t.is(await tokens.read(aJwt({ ...claims, iss }, first)), undefined);
});

test('if shards check the tokens of service accounts, these tokens are forwarded, and no others', async (t) => {
  const reader = serviceAccountTokensOfShards([issuer]);

  t.is(await reader.read(aJwt(claims, foreign)), 'backend');
  t.is(await reader.read(aJwt(legacy, foreign)), 'backend');
  t.is(await reader.read(aJwt({ ...claims, iss: 'https://other' }, foreign)), undefined);
  t.is(await reader.read('opaque'), undefined);
});

test('keys are read from public keys, private keys and certificates, and the rest of the file is ignored', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-keys-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { certificateFile } = new TestAuthority(folder);
  const secret = first.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const odd = [
    generateKeyPairSync('ed25519'),
    generateKeyPairSync('rsa', { modulusLength: 1024 }),
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
  ];
  const other = odd.map(({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' })).join('');
  const pem = `# ours\n${secret}${pemOf(second)}${other}${readFileSync(certificateFile, 'utf8')}-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n`;

  const ids = [...parseServiceAccountKeys(pem).keys()];
  t.deepEqual(ids.slice(0, 2), [first.id, second.id]);
  t.is(ids.length, 3);
  t.is(parseServiceAccountKeys('none').size, 0);
});

test('the keys of a JSON Web Key Set are read like those of PEM; other entries are ignored', (t) => {
  const jwk = (key: TestKey) => ({ ...key.publicKey.export({ format: 'jwk' }), kid: 'another', use: 'sig' });
  const { publicKey: encrypting } = generateKeyPairSync('x25519');
  const set = (keys: unknown) => JSON.stringify({ keys });

  const odd = [encrypting.export({ format: 'jwk' }), { kty: 'oct', k: 'c2VjcmV0' }, { kty: 'RSA' }, null, 7, 'text', [], {}];
  const ids = [...parseServiceAccountKeys(`\n ${set([...odd, jwk(first), jwk(second)])}`).keys()];

  t.deepEqual(ids, [first.id, second.id]);
  for (const none of [set([]), set(odd), set({}), set(null), '{}', '{', '{"keys":[']) t.is(parseServiceAccountKeys(none).size, 0, none);
});
