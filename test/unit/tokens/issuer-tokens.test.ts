/**
 * When the keys of an issuer are requested. Finds a key that is never learned, an issuer that is
 * asked without end, and tokens that fail while their issuer is away.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { IssuerTokens } from '../../../src/tokens/issuer-tokens.js';
import { InvalidToken } from '../../../src/tokens/token-user.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { TestAuthority } from '../../support/test-authority.js';
import { AnIssuer } from '../../support/tokens/an-issuer.js';
import { aKeyPair } from '../../support/tokens/jwt.js';

const askAgainMs = 10_000;

async function parts(t: ExecutionContext, { trusts = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'strata-issuer-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const authority = new TestAuthority(folder);
  const issuer = await AnIssuer.start(t, authority);
  const clock = new ManualClock(Date.now());
  const logged: string[] = [];
  const write = (event: string, fields: object = {}): void =>
    void logged.push(`${event} ${String((fields as { error?: Error }).error?.message)}`);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const rules = { url: issuer.url, audiences: ['kcp'], username: { claim: 'sub', prefix: '' }, groups: undefined, required: new Map() };
  const ca = trusts ? readFileSync(authority.certificateFile, 'utf8') : undefined;
  const open = (): IssuerTokens =>
    new IssuerTokens({ ...rules, algorithms: ['RS256', 'ES256'], discoveryUrl: undefined, ca }, { clock, log });
  return { issuer, clock, logged, open };
}

/** The token's user, or why the token is refused. */
async function read(tokens: IssuerTokens, token: string): Promise<string | undefined> {
  try {
    return (await tokens.read(token))?.user;
  } catch (error) {
    if (!(error instanceof InvalidToken)) throw error;
    return `refused: ${error.message}`;
  }
}

const unknownKeys = 'refused: the keys of the issuer are not known';
const badSignature = /^refused: the signature of the token cannot be verified: ERR_J/;
const bytes = (text: string): Uint8Array => Buffer.from(text);

test('an issuer that is away is asked again at most every ten seconds, and its keys still count when it is away later', async (t) => {
  const { issuer, clock, logged, open } = await parts(t);
  await issuer.stop();
  const tokens = open();
  const token = issuer.token();

  t.is(await read(tokens, token), unknownKeys);
  t.regex(logged[0] ?? '', /^issuer\.unavailable GET https:.*openid-configuration: connect ECONNREFUSED/);
  await issuer.start();
  t.is(await read(tokens, token), unknownKeys, 'asked just before');
  clock.advance(askAgainMs);
  t.is(await read(tokens, token), 'alice');
  await issuer.stop();
  clock.advance(1_000 * askAgainMs);
  t.is(await read(tokens, issuer.token({ exp: (clock.wallMs() + 1_000) / 1_000 })), 'alice');
  t.is(logged.length, 1);
});

test('the first token that names a new key makes the server fetch it, and unknown keys do not make it ask more often', async (t) => {
  const { issuer, clock, open } = await parts(t);
  const tokens = open();
  t.is(await read(tokens, issuer.token()), 'alice');
  const [first, second] = [issuer.keys[0]!, aKeyPair('second')];
  issuer.keys = [second];

  t.regex((await read(tokens, issuer.token({}, second))) ?? '', badSignature, 'its keys were asked for just before');
  clock.advance(askAgainMs);
  t.is(await read(tokens, issuer.token({}, second)), 'alice');
  t.regex((await read(tokens, issuer.token({}, first))) ?? '', badSignature, 'rotated out');
  const { asked } = issuer;
  clock.advance(askAgainMs);
  const stranger = aKeyPair('stranger');
  const answers = await Promise.all(Array.from({ length: 20 }, () => read(tokens, issuer.token({}, stranger))));
  for (const answer of answers) t.regex(answer ?? '', badSignature);
  t.is(issuer.asked, asked + 1);
});

test('a key that replaces another one under the same id is found as well', async (t) => {
  const { issuer, clock, open } = await parts(t);
  const tokens = open();
  const [first] = issuer.keys;
  t.is(await read(tokens, issuer.token()), 'alice');
  issuer.keys = [aKeyPair('first')];
  clock.advance(askAgainMs);

  t.is(await read(tokens, issuer.token()), 'alice');
  t.regex((await read(tokens, issuer.token({}, first))) ?? '', badSignature);
});

test('a token that names no key may be signed by any key of the issuer', async (t) => {
  const { issuer, open } = await parts(t);
  issuer.keys = [aKeyPair('one'), aKeyPair('two'), aKeyPair('three', 'RS256')];
  const tokens = open();

  for (const key of issuer.keys) t.is(await read(tokens, issuer.token({}, key, { kid: undefined })), 'alice');
  t.regex((await read(tokens, issuer.token({}, aKeyPair('other'), { kid: undefined }))) ?? '', badSignature);
});

test('a token that is no JWT of the issuer is left to other readers', async (t) => {
  const { issuer, open } = await parts(t);
  const tokens = open();

  const [head, claims, signature] = issuer.token().split('.');
  for (const token of [
    '',
    'opaque',
    'a.b',
    `${head}.${claims}`,
    `${head}.${claims}.${signature}.`,
    `${head}.${claims}=.${signature}`,
    issuer.token({ iss: 'x' }),
  ])
    t.is(await read(tokens, token), undefined, token);
});

const answers: Readonly<Record<string, readonly [answer: (path: string, url: string) => unknown, why: RegExp]>> = {
  'no JSON': [() => 'not json', /openid-configuration: no JSON object/],
  'a list': [() => [], /openid-configuration: no JSON object/],
  nothing: [() => undefined, /openid-configuration: status 404/],
  'another issuer': [(_path, url) => ({ issuer: `${url}/`, jwks_uri: `${url}/keys` }), /the configuration is of another issuer/],
  'no keys': [(_path, url) => ({ issuer: url }), /names no https URL of keys/],
  'keys in the clear': [(_path, url) => ({ issuer: url, jwks_uri: 'http://127.0.0.1/keys' }), /names no https URL of keys/],
  'keys that are none': [(path, url) => (path.endsWith('/keys') ? { keys: 1 } : { issuer: url, jwks_uri: `${url}/keys` }), /malformed/i],
  'a switch of protocols': [() => bytes('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'), /status 101/],
  'nothing, and goes': [() => bytes(''), /socket hang up/],
  'a hundred and one keys': [
    (path, url) => (path.endsWith('/keys') ? { keys: Array(101).fill({}) } : { issuer: url, jwks_uri: `${url}/keys` }),
    /more than 100 keys/,
  ],
  'two megabytes': [() => 'x'.repeat(2_000_000), /more than 1048576 bytes/],
};

for (const [what, [answer, why]] of Object.entries(answers))
  test(`an issuer that answers ${what} has no keys, and the log says why`, async (t) => {
    const { issuer, logged, open } = await parts(t);
    issuer.answers = (path) => answer(path, issuer.url);

    t.is(await read(open(), issuer.token()), unknownKeys);
    t.regex(logged.join(), why);
  });

test('the reason for refusing a token quotes nothing of the token', async (t) => {
  const { issuer, open } = await parts(t);
  const tokens = open();

  for (const header of [{ crit: ['hunter2'], hunter2: 1 }, { alg: 'hunter2' }, { kid: 'hunter2' }])
    t.notRegex((await read(tokens, issuer.token({ sub: 'hunter2' }, undefined, header))) ?? '', /hunter2/);
});

test('an issuer with an untrusted certificate has no keys', async (t) => {
  const { issuer, logged, open } = await parts(t, { trusts: false });

  t.is(await read(open(), issuer.token()), unknownKeys);
  t.regex(logged.join(), /certificate/);
});
