/**
 * How commands reach a cache: by flags, by a kubeconfig, by both; and the JSON that they print for
 * programs.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { consoleLink } from '../../../src/commands/console.js';
import { kubeconfig } from '../../../src/commands/kubeconfig.js';
import { shardsList, shardsRemove } from '../../../src/commands/shards.js';
import { status } from '../../../src/commands/status.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { aServer, type TestServer } from '../../support/test-server.js';
import { called } from '../../support/commands/called.js';

const exports = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

test('a kubeconfig, as strata kubeconfig prints it, is enough', async (t) => {
  const { server, file } = await aKubeconfig(t);
  const flags = { 'cache-kubeconfig': file };
  await server.client().create(exports, anExport);

  t.regex(await called(status, { flags }), /^amber +local +apiexports\.apis\.kcp\.io/m);
  t.regex(await called(status, { environment: { STRATA_CACHE_KUBECONFIG: file } }), /^amber /m);
  const link = (await called(consoleLink, { flags })).split('\n', 1)[0]!;
  t.true(link.startsWith(`${server.url}/console/enter?link=`));
  t.is((await server.client({ as: null }).raw('GET', link.slice(server.url.length))).status, 200);
});

test('a kubeconfig together with flags or variables that differ from it is refused, so nobody acts under an identity they did not mean', async (t) => {
  const { server, file } = await aKubeconfig(t);
  const { certificateFile, keyFile } = server.master;

  for (const flags of [
    { cache: server.url },
    { 'ca-file': server.certificateFile },
    { 'cert-file': certificateFile, 'key-file': keyFile },
  ]) {
    const error = await t.throwsAsync(called(status, { flags: { 'cache-kubeconfig': file, ...flags } }), { instanceOf: SettingsError });
    for (const flag of Object.keys(flags)) t.true(error.message.includes(`--${flag}`), error.message);
  }
  const environment = { STRATA_CERT_FILE: certificateFile, STRATA_KEY_FILE: keyFile };
  const error = await t.throwsAsync(called(status, { flags: { 'cache-kubeconfig': file }, environment }), { instanceOf: SettingsError });
  t.regex(error.message, /STRATA_CERT_FILE.*STRATA_KEY_FILE/);
});

test('without a kubeconfig one error names everything that is missing', async (t) => {
  const { server } = await aKubeconfig(t);
  const error = await t.throwsAsync(called(status, { flags: {} }), { instanceOf: SettingsError });
  t.regex(error.message, /--cache must be given.*--cert-file must be given.*--key-file must be given/s);
  const half = await t.throwsAsync(called(status, { flags: { cache: server.url, 'cert-file': server.master.certificateFile } }));
  t.regex(half!.message, /--key-file must be given/);
  t.notRegex(half!.message, /--cert-file must|--cache must/);
});

test('a kubeconfig whose user has no certificate is refused', async (t) => {
  const { file } = await aKubeconfig(t, (config) => (config.users[0]!.user = { token: 'secret' }));

  const error = await t.throwsAsync(called(status, { flags: { 'cache-kubeconfig': file } }), { message: /has no client certificate/ });
  t.notRegex(error.message, /secret/);
});

test('commands print JSON with --output=json', async (t) => {
  const { server, file } = await aKubeconfig(t);
  const flags = { 'cache-kubeconfig': file, output: 'json' };
  await server.client().create(exports, anExport);

  t.is(JSON.parse(await called(status, { flags })).shards[0].shard, 'amber');
  t.is(JSON.parse(await called(shardsList, { flags }))[0].shard, 'amber');
  const link = JSON.parse(await called(consoleLink, { flags })) as { url: string; expiresInMs: number };
  t.is(link.expiresInMs, 60_000);
  t.true(link.url.startsWith(`${server.url}/console/enter?link=`));
  t.deepEqual(JSON.parse(await called(shardsRemove, { flags, operands: ['amber'] })), { shard: 'amber', objectsRemoved: 1 });
});

test('status --watch prints the status again and again, and goes on while the cache is away', async (t) => {
  const { server, file } = await aKubeconfig(t);
  await server.client().create(exports, anExport);
  const shown: string[] = [];
  const complaints: string[] = [];
  const print = (text: string): void => {
    shown.push(text);
    void server.stop();
  };

  const flags = { 'cache-kubeconfig': file, watch: 'true', timeout: '1s' };
  const enough = new Error('enough');
  const write = (text: string): boolean => {
    complaints.push(text);
    if (complaints.length === 2) throw enough;
    return true;
  };
  const surroundings = { print, isTerminal: true, logStream: { write } as unknown as NodeJS.WritableStream };

  t.is(await t.throwsAsync(called(status, { flags, surroundings })), enough);
  t.true(shown[0]!.startsWith('\u001b[H\u001b[J'));
  t.regex(shown[0]!, /amber/);
  t.is(shown.length, 1);
  t.regex(complaints[1]!, /nothing listens at https/);
});

const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'edge' }, spec: {} };

type Config = { users: { user: object }[] };

async function aKubeconfig(
  t: ExecutionContext,
  change: (config: Config) => void = () => {},
): Promise<{ server: TestServer; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-access-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const server = await aServer(t);
  const { certificateFile, keyFile } = server.master;
  const flags = { cache: server.url, 'ca-file': server.certificateFile, 'cert-file': certificateFile, 'key-file': keyFile };
  const config = JSON.parse(await called(kubeconfig, { flags })) as Config;
  change(config);
  const file = join(folder, 'config');
  await writeFile(file, JSON.stringify(config));
  return { server, file };
}
