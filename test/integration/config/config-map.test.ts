import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { writeVolume } from '../../support/kubelet-volume.js';
import { anApiExport, aPath } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { aServer, until } from '../../support/test-server.js';

const exportPath = aPath();

test('a server reads its policies again when kubelet swaps the ConfigMap volume, and keeps the former ones if the new are malformed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-config-map-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const write = (policies: string): void => writeVolume(join(folder, 'policies'), { 'strata.yaml': policies });
  write('children: {}\n');
  const root = await StrataProcess.start({ flags: [`--config=${join(folder, 'policies', 'strata.yaml')}`, '--policy-poll=100ms'] });
  t.teardown(() => root[Symbol.asyncDispose]());
  const link = root.authority.issue({ user: 'leaf', groups: ['strata'], uris: ['strata://cache/leaf'] });
  const leaf = await aServer(t, {
    authority: root.authority,
    config: "parent: {follow: [{types: ['*']}]}",
    flags: {
      'parent-urls': root.url,
      'parent-ca-file': root.certificateFile,
      'parent-cert-file': link.certificateFile,
      'parent-key-file': link.keyFile,
    },
  });
  const made = await root.client().raw('POST', exportPath, { body: anApiExport() });
  t.is(made.status, 201, made.text);
  const held = async (): Promise<number> => (await leaf.client().raw('GET', `${exportPath}/one`)).status;
  const logged = (event: string): Promise<void> => until(async () => (await root.log()).includes(`"${event}"`));

  t.is(await held(), 404);
  write('children: {leaf: {offer: nonsense}}\n');
  await logged('policies.invalid');
  t.is(await held(), 404);
  write("children: {leaf: {offer: [{types: ['*']}]}}\n");
  await logged('policies.reloaded');

  await until(async () => (await held()) === 200);
  t.is(await root.stop(), 0, 'it ran all the time');
});
