import { KubeConfig } from '@kubernetes/client-node';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { readFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfig } from '../../../src/commands/kubeconfig.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { TestAuthority } from '../../support/test-authority.js';
import { called } from '../../support/commands/called.js';

async function flagsFor(t: ExecutionContext): Promise<Readonly<Record<string, string>>> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-kubeconfig-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const issuer = new TestAuthority(folder);
  const { certificateFile, keyFile } = issuer.issue({ user: 'ada', groups: ['system:masters'] });
  return { cache: 'https://cache.example:6443', 'ca-file': issuer.certificateFile, 'cert-file': certificateFile, 'key-file': keyFile };
}

function read(text: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(text);
  return config;
}

test('the kubeconfig leads to all objects, and contains the certificate and the authority', async (t) => {
  const flags = await flagsFor(t);

  const config = read(await called(kubeconfig, { flags }));

  t.is(config.getCurrentCluster()?.server, 'https://cache.example:6443/services/cache/shards/*/clusters/*');
  const held = [config.getCurrentCluster()?.caData, config.getCurrentUser()?.certData, config.getCurrentUser()?.keyData];
  for (const [i, file] of ['ca-file', 'cert-file', 'key-file'].entries())
    t.is(Buffer.from(held[i] ?? '', 'base64').toString(), await readFile(flags[file]!, 'utf8'));
});

test('the kubeconfig can lead to a shard, and to a logical cluster or a canonical path', async (t) => {
  const flags = await flagsFor(t);
  const serverOf = async (place: Readonly<Record<string, string>>): Promise<string | undefined> =>
    read(await called(kubeconfig, { flags: { ...flags, ...place } })).getCurrentCluster()?.server;

  t.is(await serverOf({ shard: 'amber', cluster: '1abc' }), 'https://cache.example:6443/services/cache/shards/amber/clusters/1abc');
  t.is(await serverOf({ cluster: 'root:org' }), 'https://cache.example:6443/services/cache/shards/*/clusters/root:org');
});

test('the command refuses an impossible place and a key of another certificate', async (t) => {
  const flags = await flagsFor(t);
  const other = await flagsFor(t);

  await t.throwsAsync(called(kubeconfig, { flags: { ...flags, shard: '*/x' } }), { instanceOf: SettingsError });
  await t.throwsAsync(called(kubeconfig, { flags: { ...flags, cluster: '..' } }), { instanceOf: SettingsError });
  await t.throwsAsync(called(kubeconfig, { flags: { ...flags, 'key-file': other['key-file']! } }));
  await writeFile(flags['ca-file']!, '');
  await t.throwsAsync(called(kubeconfig, { flags: { ...flags, 'ca-file': `${flags['ca-file']}.none` } }));
});
