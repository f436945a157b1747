/**
 * Token options that contradict each other or name unusable files. Finds a front door that starts
 * and checks less than its options ask for.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { tokenOptions } from '../../../src/config/options/command-options.js';
import { readCommandValues } from '../../../src/config/command-line/command-values.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { CacheError } from '../../../src/domain/errors.js';
import { openTokens } from '../../../src/server/open-tokens.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => log };
const open = async (flags: Readonly<Record<string, string>>) =>
  openTokens(readCommandValues(tokenOptions, { flags, environment: {} }), { clock: new ManualClock(), log });

const issuer = { 'oidc-issuer-url': 'https://127.0.0.1:1', 'oidc-client-id': 'kcp' };
const refused: readonly (readonly [flags: Readonly<Record<string, string>>, message: RegExp])[] = [
  [{ 'oidc-issuer-url': 'https://a' }, /--oidc-issuer-url needs --oidc-client-id/],
  [{ 'oidc-client-id': 'a' }, /--oidc-client-id needs --oidc-issuer-url/],
  [{ 'oidc-required-claim': 'a=b' }, /--oidc-required-claim needs --oidc-issuer-url/],
  [
    { 'oidc-required-claim': 'a=b', 'authentication-config': 'c' },
    /--oidc-required-claim and --authentication-config cannot be given together/,
  ],
  [{ 'oidc-signing-algs': 'ES256', 'authentication-config': 'c' }, /--oidc-signing-algs and --authentication-config/],
  [{ 'service-account-issuer': 'a' }, /--service-account-issuer needs --service-account-key-file/],
  [{ 'api-audiences': 'a' }, /--api-audiences needs --service-account-key-file/],
  [{ ...issuer, 'oidc-issuer-url': 'http://a' }, /--oidc-issuer-url must be an https URL without credentials, query or fragment/],
  [{ ...issuer, 'oidc-issuer-url': 'https://u@a' }, /--oidc-issuer-url must be an https URL without credentials, query or fragment/],
  [{ ...issuer, 'authentication-config': 'c' }, /cannot be given together/],
  [{ ...issuer, 'oidc-issuer-url': 'https://a?b' }, /--oidc-issuer-url must be an https URL without credentials, query or fragment/],
  [
    { ...issuer, 'oidc-issuer-url': 'https://kcp.default.svc' },
    /is already an issuer of service accounts, so it cannot be an OpenID Connect issuer too/,
  ],
  [{ ...issuer, 'oidc-signing-algs': 'HS256' }, /--oidc-signing-algs=HS256: must be RS256/],
  [{ ...issuer, 'oidc-required-claim': 'a' }, /--oidc-required-claim=a: must be claim=value/],
  [{ ...issuer, 'oidc-ca-file': '/nowhere/ca.crt' }, /--oidc-ca-file: cannot read the CA of the issuer/],
  [{ 'service-account-key-file': '/nowhere/sa.pub' }, /--service-account-key-file: cannot read/],
  [{ 'service-account-key-file': '/nowhere/sa.pub', 'service-account-lookup': 'false' }, /--service-account-key-file: cannot read/],
  [{ 'authentication-token-webhook-config-file': '/nowhere/webhook.kubeconfig' }, /webhook\.kubeconfig/],
  [{ 'authentication-token-webhook-version': 'v2' }, /must be v1beta1 or v1/],
  [{ 'token-auth-file': '/nowhere/tokens.csv' }, /--token-auth-file: cannot read the token file/],
];

for (const [flags, message] of refused)
  test(`no front door starts with ${JSON.stringify(flags)}`, async (t) => {
    const error = (await t.throwsAsync(open(flags), { any: true })) as Error;
    t.true(error instanceof SettingsError || error instanceof CacheError);
    t.regex(error.message, message);
  });

test('the error for a file that lacks required content names the file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-token-options-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'it');
  await writeFile(file, 'a,b\n');

  await t.throwsAsync(open({ 'token-auth-file': file }), { instanceOf: SettingsError, message: /--token-auth-file: .*it: line 1 needs/ });
  await t.throwsAsync(open({ 'service-account-key-file': file, 'service-account-lookup': 'false' }), {
    instanceOf: SettingsError,
    message: /--service-account-key-file: .*it holds neither an RSA key of at least 2,048 bits nor an EC key/,
  });
});

test('an authentication config without issuers admits nobody; without any option, tokens are left to the shards', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-token-options-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'authentication.yaml');
  await writeFile(file, 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n');

  const reader = await open({ 'authentication-config': file });
  t.is(await reader?.read('a.b.c'), undefined);
  t.not(reader, undefined);
  t.is(await open({}), undefined);
  t.is(await open({ 'service-account-lookup': 'false' }), undefined);
});
