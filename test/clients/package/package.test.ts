/**
 * Packs this build with `npm pack` and has npm install it as a user would: in a project of its own,
 * and globally.
 *
 * npm takes the dependencies from its cache or its registry. Where both lack them, every test but
 * that of the list of files is skipped with a log line. Install scripts do not run: that of
 * better-sqlite3 would download or compile for minutes what the checkout already has, so the test
 * copies it.
 */
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { runProgram, type Ran, type RunOptions } from '../installed.js';
import { projectFile } from '../../support/project.js';
import { StrataProcess } from '../../support/strata-process.js';

const installMsMax = 5 * 60_000;
const programMsMax = 60_000;
const offline = /E(?:AI_AGAIN|NOTFOUND|NOTCACHED|CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|TIMEDOUT)|ERR_SOCKET_TIMEOUT/;
const binary = 'better-sqlite3/build/Release/better_sqlite3.node';

/** All files that the package may have; any other file is a mistake. */
const wanted =
  /^(?:package\.json|README\.md|LICENSE|SECURITY\.md|CHANGELOG\.md|src\/ARCHITECTURE\.md|migrations\/.*\.sql|docs\/.*\.md|docs\/tree\.svg|docs\/console\.png|deploy\/.*|src\/domain\/status\.ts|build\/src\/console\/page\/console\.css|examples\/.*\.yaml|build\/src\/.*\.(?:js|d\.ts))$/;

let folder = '';
let tarball = '';
let project = '';
let why: string | undefined;

test.before('pack, and install in an empty project', async (t) => {
  t.timeout(installMsMax + programMsMax);
  folder = await mkdtemp(join(tmpdir(), 'strata-package-'));
  await succeeds(t, 'npm', ['pack', '--ignore-scripts', `--pack-destination=${folder}`], { cwd: projectFile(), timeoutMs: programMsMax });
  tarball = join(
    folder,
    (await readdir(folder)).find((name) => name.endsWith('.tgz'))!,
  );
  project = join(folder, 'project');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  why = await install(t, project);
});

test.after.always(async () => {
  await rm(folder, { recursive: true, force: true });
});

test('the package has code, types, migrations and pages, but no source maps, tests or benchmarks', async (t) => {
  const { stdout } = await succeeds(t, 'tar', ['-tzf', tarball], { timeoutMs: programMsMax });
  const packed = stdout
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''));
  const sources = (await readdir(projectFile('src'), { recursive: true })).filter((path) => /(?<!\.d)\.ts$/.test(path));
  // Code for the browser has no types for other programs.
  const endsOf = (path: string): readonly string[] => (path.startsWith('console/page/') ? ['.js'] : ['.js', '.d.ts']);
  const built = sources.flatMap((path) => endsOf(path).map((end) => `build/src/${path.replace(/\.ts$/, end)}`));
  const migrations = (await readdir(projectFile('migrations'))).map((path) => `migrations/${path}`);

  t.deepEqual(
    packed.filter((path) => !wanted.test(path)),
    [],
  );
  t.deepEqual(
    [...built, 'build/src/console/page/console.css', ...migrations, 'README.md', 'LICENSE', 'package.json'].filter(
      (path) => !packed.includes(path),
    ),
    [],
  );
});

law('npx runs every command, and `strata --version` prints the package’s version', async (t) => {
  const { version } = JSON.parse(await readFile(projectFile('package.json'), 'utf8')) as { version: string };

  const strata = await inProject(t, 'npx', ['--no-install', 'strata', '--version']);
  const help = await inProject(t, 'npx', ['--no-install', 'strata', '--help']);
  const cacheServer = await inProject(t, 'npx', ['--no-install', 'cache-server', '--help']);

  t.is(strata.stdout.trim(), version);
  t.regex(help.stdout, /^Usage: strata /);
  t.regex(cacheServer.stdout, /^Usage: cache-server /);
  t.regex((await inProject(t, 'npx', ['--no-install', 'kcp-front-proxy', '--help'])).stdout, /^Usage: kcp-front-proxy /);
});

law('the linked cache-server becomes ready on an empty directory, and a program compiles against the API and reads it', async (t) => {
  await using server = await StrataProcess.start({ program: join(project, 'node_modules/.bin/cache-server') });
  const readyz = await server.client().raw('GET', '/readyz');
  await writeFile(join(project, 'program.mts'), program);
  await writeFile(join(project, 'ca.crt'), server.certificate);

  const checked = await compile();
  const ran = await inProject(t, process.execPath, ['program.mjs', server.url, server.master.certificateFile, server.master.keyFile]);

  t.is(readyz.status, 200);
  t.deepEqual(checked, { code: 0, stdout: '', stderr: '' });
  t.is(ran.stdout.trim(), 'absent');
});

law('npm install -g installs every command', async (t) => {
  const prefix = join(folder, 'prefix');
  await mkdir(prefix);

  t.is(await install(t, folder, '--global', `--prefix=${prefix}`), undefined);

  const bin = join(prefix, 'bin');
  t.deepEqual((await readdir(bin)).toSorted(), ['cache-server', 'kcp-front-proxy', 'strata']);
  t.regex((await succeeds(t, join(bin, 'strata'), ['--help'], { timeoutMs: programMsMax })).stdout, /^Usage: strata /);
  t.regex((await succeeds(t, join(bin, 'cache-server'), ['--help'], { timeoutMs: programMsMax })).stdout, /^Usage: cache-server /);
});

/** A program like the README's, with the types that the package has. */
const program = `
  import { readFileSync } from 'node:fs';
  import { LocalThenCache, openCacheReader, openSender, parseShardName, type SliceSource } from 'kcp-strata';

  const [, , url = '', certificateFile = '', keyFile = ''] = process.argv;
  const read = (file: string): string => readFileSync(file, 'utf8');
  const identity = { ca: read('ca.crt'), certificate: read(certificateFile), key: read(keyFile) };
  const source: SliceSource = { connected: true, open: async function* () { yield [{ kind: 'begin', revision: '1' }, { kind: 'end', revision: '1' }]; } };
  const sender = openSender({ shard: 'amber', caches: [url], identity, agent: 'mine 1.0' });
  sender.add({ shard: parseShardName('amber')!, resource: { group: 'apis.kcp.io', resource: 'apiexports', identity: '' } }, source);
  const cache = openCacheReader({ cache: url, identity });
  const exports = new LocalThenCache({ local: () => undefined, cache, parse: (text) => JSON.parse(text) as { kind: string } });
  const answer = await exports.get({ group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports', cluster: 'root:org:team', name: 'widgets' });
  console.log(answer.kind);
  await cache.close();
`;

/**
 * Compiles with the checkout's compiler; the types of the API and of its dependencies are the
 * package's.
 */
async function compile(): Promise<Ran> {
  const options = ['--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node', '--skipLibCheck', 'false'];
  const tsc = projectFile('node_modules', 'typescript', 'bin', 'tsc');
  return await runProgram(process.execPath, [tsc, ...options, 'program.mts'], { cwd: project, timeoutMs: programMsMax });
}

/**
 * Installs the tarball. Returns the reason if npm cannot reach the registry; any other failure
 * fails the test.
 */
async function install(t: ExecutionContext, cwd: string, ...flags: readonly string[]): Promise<string | undefined> {
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', ...flags, tarball];
  const { code, stderr } = await runProgram('npm', args, { cwd, timeoutMs: installMsMax });
  if (code !== 0 && offline.test(stderr)) return `npm cannot reach its registry: ${stderr.split('\n')[0]}`;
  t.is(code, 0, stderr);
  const { stdout } = await succeeds(t, 'npm', ['root', ...flags], { cwd, timeoutMs: programMsMax });
  await copyBinary(stdout.trim());
  return undefined;
}

/** Where npm puts the package's dependencies: beside it, or below it after a global install. */
async function copyBinary(modules: string): Promise<void> {
  const below = join(modules, 'kcp-strata', 'node_modules');
  const target = join((await readdir(modules)).includes('better-sqlite3') ? modules : below, binary);
  await mkdir(dirname(target), { recursive: true });
  await copyFile(projectFile('node_modules', binary), target);
}

function inProject(t: ExecutionContext, command: string, args: readonly string[]): Promise<Ran> {
  return succeeds(t, command, args, { cwd: project, timeoutMs: programMsMax });
}

async function succeeds(t: ExecutionContext, command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const ran = await runProgram(command, args, options);
  t.is(ran.code, 0, `${command} ${args.join(' ')}: ${ran.stderr}`);
  return ran;
}

function law(title: string, check: (t: ExecutionContext) => Promise<void>): void {
  test(title, async (t) => {
    if (why !== undefined) {
      t.log(`skipped: ${why}`);
      t.pass();
      return;
    }
    t.timeout(installMsMax);
    await check(t);
  });
}
