import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadKubeconfig } from '../../src/shard/kubeconfig.js';
import type { ShardAccess } from '../../src/shard/shard-access.js';
import { ShardStandIn } from '../support/shard-stand-in.js';

type Parts = Readonly<{ cluster?: Readonly<Record<string, unknown>>; user?: Readonly<Record<string, unknown>>; server?: string }>;

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-kubeconfig-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

async function loaded(
  folder: string,
  { cluster = {}, user = {}, server = 'https://shard:6443' }: Parts,
  allowInsecure = false,
): Promise<ShardAccess> {
  const path = join(folder, 'kubeconfig');
  const config = {
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'u' } },
      { name: 'lost', context: { cluster: 'nowhere', user: 'u' } },
    ],
    'current-context': 'one',
  };
  await writeFile(path, JSON.stringify(config));
  return loadKubeconfig({ path, context: undefined, allowInsecure });
}

test('a shard is reached with the credentials of its kubeconfig', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());

  const access = await loadKubeconfig({ path: shard.kubeconfig, context: undefined, allowInsecure: false });

  const { credentials, ...rest } = access;
  const { credentials: expected, ...restExpected } = shard.access;
  t.deepEqual(rest, restExpected);
  t.deepEqual(await credentials(), await expected());
});

test("certificates come from the file or from files beside it; the logical cluster in the server's URL is dropped", async (t) => {
  const folder = await aFolder(t);
  await writeFile(join(folder, 'ca.crt'), 'CA');
  await writeFile(join(folder, 'tls.key'), 'KEY');
  const access = await loaded(folder, {
    server: 'https://shard:6443/kcp/clusters/root:org',
    cluster: { 'certificate-authority': 'ca.crt', 'tls-server-name': 'amber' },
    user: { 'client-certificate-data': Buffer.from('CERT').toString('base64'), 'client-key': './tls.key' },
  });

  t.is(access.server, 'https://shard:6443/kcp');
  t.is(access.ca, 'CA');
  t.is(access.serverName, 'amber');
  t.deepEqual(await access.credentials(), { certificate: 'CERT', key: 'KEY' });
});

test('a token file is read for every request, and a plugin is run', async (t) => {
  const folder = await aFolder(t);
  const file = join(folder, 'token');
  await writeFile(file, 'first\n');
  const byFile = await loaded(folder, { user: { tokenFile: 'token' } });
  t.deepEqual(await byFile.credentials(), { authorization: 'Bearer first' });
  await writeFile(file, 'second\n');
  t.deepEqual(await byFile.credentials(), { authorization: 'Bearer second' });

  const plugin = join(folder, 'plugin.sh');
  await writeFile(plugin, `#!/bin/sh\necho '{"status":{"token":"'"$1"'","clientCertificateData":"C","clientKeyData":"K"}}'\n`);
  await chmod(plugin, 0o755);
  const byPlugin = await loaded(folder, {
    user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, args: ['made'] } },
  });
  t.deepEqual(await byPlugin.credentials(), { authorization: 'Bearer made', certificate: 'C', key: 'K' });
});

test('an unsupported kubeconfig is refused when it is read, with the reason', async (t) => {
  const folder = await aFolder(t);
  const cases: [Parts, RegExp][] = [
    [{ cluster: { 'insecure-skip-tls-verify': true } }, /asks for TLS without a check/],
    [{ cluster: { 'proxy-url': 'http://proxy' } }, /behind a proxy/],
    [{ user: { username: 'a', password: 'b' } }, /needs more than a certificate/],
    [{ user: { as: 'someone' } }, /needs more than a certificate/],
    [{ user: { 'auth-provider': { name: 'gcp' } } }, /needs more than a certificate/],
    [{ server: 'http://shard:6443' }, /is no https URL/],
    [{ server: 'shard' }, /is no https URL/],
  ];
  for (const [parts, message] of cases) await t.throwsAsync(loaded(folder, parts), { message });

  const path = join(folder, 'kubeconfig');
  await t.throwsAsync(loadKubeconfig({ path, context: 'two', allowInsecure: false }), { message: /no context "two", but one, lost/ });
  await t.throwsAsync(loadKubeconfig({ path, context: 'lost', allowInsecure: false }), { message: /names the cluster nowhere/ });
  await writeFile(path, 'contexts: [{name: x}]');
  await t.throwsAsync(loadKubeconfig({ path, context: 'x', allowInsecure: false }), {
    message: /no kubeconfig: contexts\[0\]\.context is missing/,
  });
  await writeFile(path, 'a: [');
  await t.throwsAsync(loadKubeconfig({ path, context: 'x', allowInsecure: false }), { message: /no kubeconfig/ });
});

test('a certificate goes unchecked only when the file and the operator both say so', async (t) => {
  const access = await loaded(await aFolder(t), { cluster: { 'insecure-skip-tls-verify': true } }, true);

  t.true(access.insecure);
});
