/**
 * Builds the image of `npm run image` on a base made of this machine, and runs it from its archive.
 * Finds wrong labels or libraries, and an image that does not serve. With TEST_IMAGES=2, which
 * `.ci/release` sets, builds it twice, because each build compiles SQLite, and finds a byte that
 * differs. Needs root, buildah, Linux namespaces and what npm has cached or can fetch; the log says
 * when the test is skipped.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installed, runProgram } from '../../clients/installed.js';
import { documentedTags } from '../../support/documented-tags.js';
import { KubeClient } from '../../support/kube-client.js';
import { makeBaseImage } from '../../support/machines/base-image.js';
import { Container } from '../../support/machines/container.js';
import { Volumes } from '../../support/machines/volumes.js';
import { projectFile } from '../../support/project.js';
import { TestAuthority } from '../../support/test-authority.js';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';

const buildMsMax = 500_000;
const base = 'localhost/strata-test-base';
const source = 'https://git.example/strata';
const builds = Number(process.env['TEST_IMAGES'] ?? '1');

test('the image of a checkout says what is in it, and serves as a user who owns nothing', async (t) => {
  const why = (await installed('buildah', '--version')) === undefined ? 'buildah is not installed' : Container.whyNot();
  if (why !== undefined) {
    t.log(`SKIPPED (the only test of the image): ${why}`);
    t.pass();
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'strata-image-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const environment = await aStore(folder);
  const none = await makeBaseImage(base, { folder: join(folder, 'base'), environment });
  if (none !== undefined) {
    t.log(`SKIPPED (the only test of the image): ${none.why}`);
    t.pass();
    return;
  }

  const { version } = JSON.parse(await readFile(projectFile('package.json'), 'utf8')) as { version: string };
  const one = await build(join(folder, '1'), version, environment);
  t.regex(one.digest, /^sha256:[0-9a-f]{64}$/);
  for (let number = 2; number <= builds; number += 1) {
    const other = await build(join(folder, String(number)), version, environment);
    t.true(one.sbom === other.sbom, 'both list the same libraries');
    t.deepEqual([one.digest, one.sha256], [other.digest, other.sha256]);
  }

  const layout = join(folder, 'layout');
  const root = join(folder, 'root');
  const { reference, config } = await unpack(one.archive, { layout, root });
  t.deepEqual([...new Set([...documentedTags().values()].flat())], [reference]);
  const revision = (await runProgram('git', ['rev-parse', 'HEAD'], { cwd: projectFile(), timeoutMs: 10_000 })).stdout.trim();
  const labels = config.config.Labels;
  t.like(labels, {
    'org.opencontainers.image.source': source,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.title': 'Strata',
    'org.opencontainers.image.description': 'A hierarchical cache server for kcp',
  });
  t.true(labels['org.opencontainers.image.revision']!.startsWith(revision));
  t.is(await readFile(join(root, 'opt/strata/LICENSE'), 'utf8'), await readFile(projectFile('LICENSE'), 'utf8'));
  t.is(await readFile(join(root, 'opt/strata/sbom.spdx.json'), 'utf8'), one.sbom);
  const sbom = JSON.parse(one.sbom) as Sbom;
  t.is(sbom.spdxVersion, 'SPDX-2.3');
  const lock = JSON.parse(await readFile(join(root, 'opt/strata/node_modules/.package-lock.json'), 'utf8')) as Lock;
  const there = Object.entries(lock.packages).map(([path, each]) => `${each.name ?? path.replace(/.*node_modules\//, '')}@${each.version}`);
  const listed = sbom.packages.map(({ name, versionInfo }) => `${name}@${versionInfo}`);
  // The SBOM lists a package once that is installed twice.
  t.deepEqual([...new Set(listed)].toSorted(), [...new Set([...there, `kcp-strata@${version}`])].toSorted());

  for (const program of ['/strata', '/cache-server', '/kcp-front-proxy']) {
    await using container = await Container.start({ image: root, command: [program, '--version'], mounts: [] });
    t.is(await container.ended(), 0, await container.log());
    t.is(await container.log(), `${version}\n`, program);
  }
  const { Entrypoint, Cmd, User } = config.config;
  t.is(User, '10001:10001');
  const authority = new TestAuthority(folder);
  await mkdir(join(folder, 'volumes'));
  const volumes = new Volumes(join(folder, 'volumes'));
  const ca = await volumes.files('/ca', { 'tls.crt': await readFile(authority.certificateFile, 'utf8') });
  await using container = await Container.start({
    image: root,
    command: [...Entrypoint, ...Cmd, '--client-ca-file=/ca/tls.crt'],
    // A container engine fills a new volume so: from the image's folder, with its owner.
    mounts: [{ folder: join(root, 'var/lib/strata'), path: '/var/lib/strata', isReadOnly: false }, ca],
    serves: [6443],
  });
  const { certificate, key } = authority.master;
  const client = new KubeClient({ url: container.url(6443), certificate, key });
  t.teardown(() => client.close());
  await until(async () => {
    if (!container.isRunning) throw new Error(await container.log());
    return (await client.raw('GET', '/readyz').catch(() => undefined))?.status === 200;
  });
  const body = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one' } };
  const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
  t.is((await client.raw('POST', path, { body })).status, 201);
  t.is(await container.stop(), 0, await container.log());
});

type Built = Readonly<{ digest: string; archive: string; sha256: string; sbom: string }>;

type Sbom = Readonly<{ spdxVersion: string; packages: readonly Readonly<{ name: string; versionInfo: string }>[] }>;

/** npm's record of what it has installed. */
type Lock = Readonly<{ packages: Readonly<Record<string, Readonly<{ name?: string; version: string }>>> }>;

/** The parts of an image's configuration that the test checks. */
type ImageConfig = Readonly<{
  config: Readonly<{ User: string; Entrypoint: readonly string[]; Cmd: readonly string[]; Labels: Readonly<Record<string, string>> }>;
}>;

/** Environment of buildah: a store for this test, and what it needs without user namespaces. */
async function aStore(folder: string): Promise<Readonly<Record<string, string>>> {
  const file = join(folder, 'storage.conf');
  const [graph, run] = [join(folder, 'graph'), join(folder, 'run')];
  await writeFile(file, `[storage]\ndriver = "vfs"\ngraphroot = "${graph}"\nrunroot = "${run}"\n`);
  return { CONTAINERS_STORAGE_CONF: file, STORAGE_DRIVER: 'vfs', BUILDAH_ISOLATION: 'chroot' };
}

async function build(out: string, version: string, environment: Readonly<Record<string, string>>): Promise<Built> {
  const args = [projectFile('.ci', 'image.js'), '--base', base, '--out', out, '--source', source];
  const { code, stdout, stderr } = await runProgram(process.execPath, args, { environment, timeoutMs: buildMsMax });
  if (code !== 0) throw new Error(stderr.slice(-3_000));
  const archive = join(out, `strata-${version}.oci.tar`);
  const sha256 = createHash('sha256')
    .update(await readFile(archive))
    .digest('hex');
  return { digest: stdout.trim(), archive, sha256, sbom: await readFile(join(out, `strata-${version}.spdx.json`), 'utf8') };
}

/** Extracts the layers of the archive, one over the other, into `root`. */
async function unpack(archive: string, { layout, root }: Readonly<{ layout: string; root: string }>) {
  const extract = async (file: string, folder: string): Promise<void> => {
    await mkdir(folder, { recursive: true });
    const { code, stderr } = await runProgram('tar', ['--extract', '--file', file, '--directory', folder], { timeoutMs: 60_000 });
    if (code !== 0) throw new Error(stderr);
  };
  const blob = (digest: string): string => join(layout, 'blobs', ...digest.split(':'));
  const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(file, 'utf8')) as unknown;
  await extract(archive, layout);
  const { manifests } = (await read(join(layout, 'index.json'))) as {
    manifests: readonly [{ digest: string; annotations: Readonly<Record<string, string>> }];
  };
  const [{ digest, annotations }] = manifests;
  const { layers, config } = (await read(blob(digest))) as { layers: readonly { digest: string }[]; config: { digest: string } };
  for (const layer of layers) await extract(blob(layer.digest), root);
  return { reference: annotations['org.opencontainers.image.ref.name'], config: (await read(blob(config.digest))) as ImageConfig };
}
