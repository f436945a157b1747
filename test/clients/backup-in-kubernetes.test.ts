/**
 * Backup and restore on Kubernetes, as docs/backup.md describes them, with the files of
 * deploy/kubernetes. The CronJob and the Job must have only fields that Kubernetes knows, and their
 * commands must do what the page says. The chart must accept the sidecar.
 */
import { readFileSync } from 'node:fs';
import { access, mkdir, symlink, utimes } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { builtMain, projectFile } from '../support/project.js';
import { StrataProcess } from '../support/strata-process.js';
import { test } from '../support/test.js';
import { buildStrictDecoder, helmTest, refusals, render } from './chart/helm.js';
import { runProgram } from './installed.js';

type PodTemplate = Readonly<{
  spec: Readonly<{
    containers: readonly [Readonly<{ command: readonly string[]; args: readonly string[]; volumeMounts: readonly Mount[] }>];
  }>;
}>;
type Mount = Readonly<{ mountPath: string }>;
type Job = Readonly<{ spec: Readonly<{ template: PodTemplate }> }>;

const cronJob = deployedYaml<Readonly<{ spec: Readonly<{ jobTemplate: Job }> }>>('backup.yaml');
const restore = deployedYaml<Job>('restore.yaml');
const sidecar = deployedYaml<Readonly<{ cache: Readonly<Record<string, unknown>> }>>('litestream.yaml');
const collection = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

function deployedYaml<Shape>(file: string): Shape {
  return parse(readFileSync(projectFile('deploy', 'kubernetes', file), 'utf8')) as Shape;
}

/** Runs the container's command. `volumes` gives the folder for each mount path. */
async function runContainer({ spec }: PodTemplate, folder: string, volumes: Readonly<Record<string, string>>) {
  const [{ command, args, volumeMounts }] = spec.containers;
  const placed = [...command, ...args].map((argument) =>
    volumeMounts.reduce((text, { mountPath }) => text.replaceAll(mountPath, volumes[mountPath] ?? 'nowhere'), argument),
  );
  const [program = '', ...rest] = placed;
  const PATH = `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`;
  return runProgram(program, rest, { environment: { PATH }, timeoutMs: 60_000 });
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

test('the CronJob backs up a running server and keeps two weeks, and the Job replaces the store by the newest backup', async (t) => {
  t.timeout(120_000);
  await using server = await StrataProcess.start();
  const { folder, dataFolder } = server;
  const backups = join(folder, 'backups');
  const volumes = { '/var/lib/strata': dataFolder, '/backups': backups };
  for (const made of ['bin', 'backups']) await mkdir(join(folder, made));
  await symlink(builtMain(), join(folder, 'bin', 'strata'));
  const write = (name: string) =>
    server.client().create(collection, { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } });
  const names = async (): Promise<readonly (string | undefined)[]> =>
    (await server.client().list(collection)).items.map(({ metadata }) => metadata.name);

  await write('before');
  for (const [name, days] of [
    ['2026-01-01T031700Z.db', 15],
    ['2026-01-02T031700Z.db', 13],
  ] as const) {
    await server.client().raw('GET', collection);
    const { code, stderr } = await runProgram(builtMain(), ['backup', join(backups, name), `--root-directory=${dataFolder}`], {
      timeoutMs: 60_000,
    });
    t.is(code, 0, stderr);
    const at = new Date(Date.now() - days * 86_400_000);
    await utimes(join(backups, name), at, at);
  }
  await write('backed-up');
  const { code, stdout, stderr } = await runContainer(cronJob.spec.jobTemplate.spec.template, folder, volumes);
  t.is(code, 0, stderr);
  t.regex(stdout, /No damage was found/);
  t.deepEqual(
    [await isThere(join(backups, '2026-01-01T031700Z.db')), await isThere(join(backups, '2026-01-02T031700Z.db'))],
    [false, true],
  );
  await write('lost');

  const early = await runContainer(restore.spec.template, folder, volumes);
  t.is(early.code, 1, 'the Job must refuse while the server runs');
  t.deepEqual(await names(), ['backed-up', 'before', 'lost']);
  await server.stop();
  const restored = await runContainer(restore.spec.template, folder, volumes);
  t.is(restored.code, 0, restored.stderr);
  await server.resume();
  t.deepEqual(await names(), ['backed-up', 'before']);
});

helmTest('CronJob and Job have only fields of Kubernetes and use the claim of the chart’s cache, which accepts the sidecar', async (t) => {
  const decoder = await buildStrictDecoder();
  if ('why' in decoder) {
    t.log(`SKIPPED: ${decoder.why}`);
    t.pass();
    return;
  }
  t.deepEqual(await refusals(decoder, [cronJob, restore]), ['', '']);
  t.regex((await refusals(decoder, [{ ...restore, speck: {} }]))[0]!, /speck/);

  const sets = Object.fromEntries(Object.entries(sidecar.cache).map(([name, value]) => [`cache.${name}`, value]));
  const documents = await render({ name: 'strata', example: 'cache', sets });
  t.deepEqual([...new Set(await refusals(decoder, documents))], ['']);
  const cache = documents.find(({ kind }) => kind === 'StatefulSet')!;
  const { template, volumeClaimTemplates } = cache.spec as Readonly<{
    template: Readonly<{
      spec: Readonly<{ containers: readonly Readonly<{ name: string }>[]; volumes: readonly Readonly<{ name: string }>[] }>;
    }>;
    volumeClaimTemplates: readonly Readonly<{ metadata: Readonly<{ name: string }> }>[];
  }>;
  t.deepEqual(
    template.spec.containers.map(({ name }) => name),
    ['cache', 'litestream'],
  );
  t.true(template.spec.volumes.some(({ name }) => name === 'litestream'));
  const claim = `${volumeClaimTemplates[0]!.metadata.name}-${cache.metadata.name}-0`;
  for (const pods of [cronJob.spec.jobTemplate.spec.template, restore.spec.template])
    t.regex(JSON.stringify(pods), new RegExp(`"claimName":"${claim}"`));
});
