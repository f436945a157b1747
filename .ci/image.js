/**
 * `npm run image [-- --base IMAGE --out FOLDER --source URL]`: builds the image of
 * deploy/Containerfile with buildah, without a daemon.
 *
 *   what npm would publish, package-lock.json ─▶ buildah ─▶ strata-0.1.0.oci.tar    OCI layout
 *                                                       └─▶ strata-0.1.0.spdx.json  its libraries
 *
 * The same checkout on the same base gives the same bytes: every time in the image is that of the
 * commit (or SOURCE_DATE_EPOCH), and the libraries are those of the lock. A base named by its
 * digest (`--base docker.io/library/node@sha256:…`) is the same everywhere.
 * STORAGE_DRIVER, BUILDAH_ISOLATION and CONTAINERS_STORAGE_CONF are buildah's own: without user
 * namespaces, the first two are `vfs` and `chroot`.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: 'docker.io/library/node:24-bookworm-slim' },
    out: { type: 'string', default: '.' },
    source: { type: 'string' },
  },
});
const out = resolve(values.out);
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { version, description, license } = JSON.parse(readFileSync('package.json', 'utf8'));
const name = `strata-${version}`;
const folder = mkdtempSync(join(tmpdir(), 'strata-image-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

if (!existsSync(join('build', 'src', 'main.js'))) fail('there is no build: npm run build');
if (spawnSync('buildah', ['--version']).status !== 0) fail('buildah is not installed (Debian: apt-get install buildah)');
const changed = printed('git', ['status', '--porcelain']) !== '';
if (changed) process.stderr.write('The checkout has changes that no commit has: the revision of the image ends with -dirty.\n');
const revision = printed('git', ['rev-parse', 'HEAD']) + (changed ? '-dirty' : '');
const epoch = process.env.SOURCE_DATE_EPOCH ?? printed('git', ['log', '-1', '--format=%ct']);
if (values.source === undefined) process.stderr.write('Without --source, the image does not say where its sources are.\n');

const context = join(folder, 'package');
const [{ filename }] = JSON.parse(printed('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]));
run('tar', ['--extract', '--gzip', '--file', join(folder, filename), '--directory', folder]);
copyFileSync('package-lock.json', join(context, 'package-lock.json'));

const labels = { title: 'Strata', description, licenses: license, version, revision, ...(values.source && { source: values.source }) };
// The authorities that npm trusts on this machine beside those of Node; the image does not keep
// them.
const { NODE_EXTRA_CA_CERTS: authorities } = process.env;
const trusted = authorities === undefined ? [] : [`--volume=${authorities}:/run/authorities.crt:ro`, '--build-arg=NODE_EXTRA_CA_CERTS=/run/authorities.crt'];
const image = `localhost/strata:${name}`;
run('buildah', [
  'build',
  '--format=oci',
  `--timestamp=${epoch}`,
  // Otherwise the image would name the version of buildah.
  '--identity-label=false',
  `--build-arg=BASE=${values.base}`,
  `--build-arg=SOURCE_DATE_EPOCH=${epoch}`,
  `--build-arg=REVISION=${revision}`,
  ...trusted,
  ...Object.entries(labels).map(([key, value]) => `--label=org.opencontainers.image.${key}=${value}`),
  `--file=${join(context, 'deploy', 'Containerfile')}`,
  `--tag=${image}`,
  context,
]);

const layout = join(folder, 'layout');
run('buildah', ['push', '--quiet', image, `oci:${layout}:${name}`]);
const blob = (digest) => join(layout, 'blobs', ...digest.split(':'));
const [{ digest }] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests;
const { layers } = JSON.parse(readFileSync(blob(digest), 'utf8'));
const sbom = layers.map((layer) => spawnSync('tar', ['-xzOf', blob(layer.digest), 'opt/strata/sbom.spdx.json'], { maxBuffer: 64 << 20 }));
const found = sbom.find(({ status }) => status === 0) ?? fail('the image has no SBOM');

mkdirSync(out, { recursive: true });
writeFileSync(join(out, `${name}.spdx.json`), found.stdout);
const archive = join(folder, 'image.tar');
const fixed = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX', '--format=ustar'];
run('tar', ['--create', ...fixed, '--file', archive, '--directory', layout, ...readdirSync(layout).toSorted()]);
copyFileSync(archive, join(out, `${name}.oci.tar.new`));
renameSync(join(out, `${name}.oci.tar.new`), join(out, `${name}.oci.tar`));
process.stdout.write(`${digest}\n`);

/** Prints buildah's progress on standard error, so that standard output has only the digest. */
function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) fail(`${program} ${args[0]}: ${error?.message ?? `it ended with ${status}`}`);
}

function printed(program, args) {
  const { status, stdout, error } = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 2] });
  if (status !== 0) fail(`${program} ${args[0]}: ${error?.message ?? `it ended with ${status}`}`);
  return stdout.trim();
}

function fail(why) {
  process.stderr.write(`image: ${why}\n`);
  process.exit(1);
}
