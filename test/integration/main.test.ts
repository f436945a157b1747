/** The process itself: how it handles signals, and when it refuses to start. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { Authority } from '../../src/certificates/authority.js';
import { systemClock } from '../../src/clock.js';
import { builtMain } from '../support/project.js';
import { StrataProcess } from '../support/strata-process.js';
import { TestAuthority } from '../support/test-authority.js';
import { until } from '../support/test-server.js';
import { spawn } from '../support/children.js';

type Line = Readonly<{ level: string; event: string; [field: string]: unknown }>;

const status = '/services/cache/status';

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-main-'));
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

async function linesOf(server: StrataProcess, event: string): Promise<readonly Line[]> {
  const lines = (await server.log()).split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Line).filter((line) => line.event === event);
}

/** Sends SIGHUP; returns the log line that reports the result. */
async function hangUp(server: StrataProcess): Promise<Line | undefined> {
  const before = (await linesOf(server, 'server.reloaded')).length;
  process.kill(server.pid, 'SIGHUP');
  await until(async () => (await linesOf(server, 'server.reloaded')).length > before);
  return (await linesOf(server, 'server.reloaded')).at(-1);
}

test('SIGHUP reloads serving certificate, client CA and policies at once, and one line gives the result for each', async (t) => {
  const folder = await aFolder(t);
  const next = new TestAuthority(await aFolder(t), { name: 'next' });
  const authority = await Authority.create({ clock: systemClock }, { name: 'serving', validityDays: 5 });
  const issue = (): ReturnType<Authority['issueServing']> => authority.issueServing({ names: ['127.0.0.1'], validityDays: 5 });
  const [certFile, keyFile, caFile] = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => join(folder, name)) as [string, string, string];
  const writePair = async (): Promise<void> => {
    const { certificatePem, keyPem } = await issue();
    await writeFile(certFile, certificatePem);
    await writeFile(keyFile, keyPem);
  };
  await writePair();
  const clients = new TestAuthority(await aFolder(t));
  await writeFile(caFile, await readFile(clients.certificateFile));
  await using server = await StrataProcess.start({
    authority: clients,
    config: 'parent: {forward: []}\n',
    flags: [
      `--tls-cert-file=${certFile}`,
      `--tls-private-key-file=${keyFile}`,
      `--client-ca-file=${caFile}`,
      '--tls-files-poll=1h',
      '--policy-poll=1h',
    ],
  });
  const everything = ['serving-certificate', 'client-ca', 'policies'];

  t.like(await hangUp(server), { level: 'info', changed: [], unchanged: everything, failed: {} });

  await writePair();
  await writeFile(caFile, await readFile(next.certificateFile));
  await writeFile(join(server.folder, 'strata.yaml'), 'children: {eu: {offer: {types: ["*"]}}}\n');
  t.like(await hangUp(server), { level: 'info', changed: everything, unchanged: [], failed: {} });
  const master = next.issue({ user: 'someone', groups: ['system:masters'] });
  t.is((await server.client({ as: master }).raw('GET', status)).status, 200);
  t.is((await server.client().raw('GET', status)).status, 403);

  await writeFile(keyFile, 'torn');
  await writeFile(caFile, 'torn');
  await writeFile(join(server.folder, 'strata.yaml'), 'children: 7\n');
  const torn = await hangUp(server);
  t.like(torn, { level: 'warn', changed: [], unchanged: [] });
  const failed = torn?.['failed'] as Record<string, string>;
  t.deepEqual(Object.keys(failed), everything);
  t.regex(failed['serving-certificate']!, /tls\.key holds no PEM private key/);
  t.regex(failed['client-ca']!, /ca\.crt holds no certificate/);
  t.regex(failed['policies']!, /strata\.yaml line 1: /);
  t.is((await server.client({ as: master }).raw('GET', status)).status, 200);
});

test('a file that becomes a FIFO, a device or a folder is refused by name, and the server continues', async (t) => {
  const folder = await aFolder(t);
  const typesFile = join(folder, 'types.yaml');
  await writeFile(typesFile, 'types: []\n');
  const authority = new TestAuthority(await aFolder(t));
  await using server = await StrataProcess.start({
    authority,
    config: 'parent: {forward: []}\n',
    flags: [`--types-file=${typesFile}`, '--tls-files-poll=1h', '--policy-poll=1h'],
  });
  const files = {
    'serving-certificate': server.certificateFile,
    'client-ca': authority.certificateFile,
    policies: join(server.folder, 'strata.yaml'),
    types: typesFile,
  };

  for (const [become, complaint] of [
    [(path: string) => void spawnSync('mkfifo', [path]), /a regular file is needed, and this is a FIFO/],
    [(path: string) => symlink('/dev/zero', path), /a regular file is needed, and this is a device/],
    [(path: string) => mkdir(path), /EISDIR/],
  ] as const) {
    for (const file of Object.values(files)) {
      await rm(file, { recursive: true });
      await become(file);
    }
    const failed = (await hangUp(server))?.['failed'] as Record<string, string>;
    t.deepEqual(Object.keys(failed).toSorted(), Object.keys(files).toSorted());
    for (const [what, file] of Object.entries(files)) {
      t.regex(failed[what]!, complaint);
      t.true(failed[what]!.includes(file), failed[what]);
    }
    t.is((await server.client().raw('GET', status)).status, 200);
  }
});

test('SIGHUP does not end a server that is starting or stopping', async (t) => {
  const folder = await aFolder(t);
  const authority = new TestAuthority(folder);
  const logged: string[] = [];
  const flags = [
    `--root-directory=${join(folder, 'root')}`,
    `--client-ca-file=${authority.certificateFile}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
  ];
  const child = spawn(process.execPath, [builtMain(), 'serve', ...flags, '--log-level=debug'], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stderr.on('data', (chunk: Buffer) => logged.push(chunk.toString()));
  const exited = once(child, 'close');
  const has = (event: string): boolean => logged.join('').includes(`"event":"${event}"`);

  // The process writes the first line of its log before it opens anything.
  await until(() => logged.length > 0);
  for (let hung = 0; hung < 3; hung += 1) child.kill('SIGHUP');
  await until(() => has('server.started'));
  await until(() => has('server.reloaded'));
  child.kill('SIGTERM');
  for (let hung = 0; hung < 20; hung += 1) child.kill('SIGHUP');

  t.deepEqual(await exited, [0, null]);
  t.true(has('server.stopped'), logged.join(''));
});

test('it starts as kcp-operator starts a cache server, and stores where the embedded etcd would', async (t) => {
  const folder = await aFolder(t);
  const [data, elsewhere] = [join(folder, 'var', 'etcd'), join(folder, 'elsewhere')];
  await mkdir(elsewhere);
  // The operator starts /cache-server, which here is another name of the same file.
  const program = join(folder, 'cache-server');
  await symlink(builtMain(), program);
  const authority = new TestAuthority(folder);
  const pair = authority.issue({ user: 'localhost', groups: [] });
  const flags = [
    `--tls-cert-file=${pair.certificateFile}`,
    `--tls-private-key-file=${pair.keyFile}`,
    '--root-directory=',
    `--client-ca-file=${authority.certificateFile}`,
    `--embedded-etcd-directory=${data}`,
    '--logging-format=json',
    '--v=2',
    '--bind-address=127.0.0.1',
    '--secure-port=0',
  ];
  const child = spawn(program, flags, { cwd: elsewhere, stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let logged = '';
  child.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()));
  const exited = once(child, 'close');
  await until(() => logged.includes('"event":"server.started"') || child.exitCode !== null);
  t.true(logged.includes(`"dataDirectory":"${data}"`), logged);
  child.kill('SIGTERM');

  t.deepEqual(await exited, [0, null]);
  t.true((await readdir(data)).includes('strata.db'));
  t.deepEqual(await readdir(elsewhere), []);
});

test("it starts as kcp's sharded-test-server starts a front proxy, and names the flags that do not apply", async (t) => {
  const folder = await aFolder(t);
  const program = join(folder, 'kcp-front-proxy');
  await symlink(builtMain(), program);
  const authority = new TestAuthority(folder);
  const pair = authority.issue({ user: 'localhost', groups: [] });
  const mapping = join(folder, 'mapping.yaml');
  const shown = `backend_server_ca: ${authority.certificateFile}, proxy_client_cert: ${pair.certificateFile}, proxy_client_key: ${pair.keyFile}`;
  await writeFile(mapping, `- {path: /clusters/, backend: "https://127.0.0.1:1", ${shown}}\n`);
  const flags = [
    `--mapping-file=${mapping}`,
    `--root-directory=${folder}`,
    '--root-kubeconfig=root.kubeconfig',
    '--shards-kubeconfig=shards.kubeconfig',
    `--client-ca-file=${authority.certificateFile}`,
    `--requestheader-client-ca-file=${authority.certificateFile}`,
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-allowed-names=kcp-front-proxy,kcp-mounts-proxy',
    `--service-account-key-file=${pair.keyFile}`,
    `--tls-cert-file=${pair.certificateFile}`,
    `--tls-private-key-file=${pair.keyFile}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    '--logging-format=json',
    '--v=2',
  ];
  const env = {
    ...process.env,
    STRATA_CACHE_NAME: 'front-door',
    STRATA_PARENT_URLS: 'https://127.0.0.1:1',
    STRATA_PARENT_CA_FILE: authority.certificateFile,
    STRATA_PARENT_CERT_FILE: pair.certificateFile,
    STRATA_PARENT_KEY_FILE: pair.keyFile,
  };
  const child = spawn(program, flags, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let logged = '';
  child.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()));
  const exited = once(child, 'close');
  await until(() => logged.includes('"event":"server.started"') || child.exitCode !== null);
  t.regex(logged, /--root-kubeconfig, --shards-kubeconfig: the front door learns from the cache above where a request goes/);
  child.kill('SIGTERM');
  t.deepEqual(await exited, [0, null], logged);

  const alone = spawnSync(program, flags, { encoding: 'utf8' });
  t.is(alone.status, 2);
  t.regex(alone.stderr, /needs the cache above that it follows: --parent-urls \(STRATA_PARENT_URLS\)/);
  const refused = spawnSync(program, [...flags, '--requestheader-username-headers=X-Forwarded-User'], { encoding: 'utf8' });
  t.is(refused.status, 2);
  t.regex(refused.stderr, /^kcp-front-proxy: .*must be X-Remote-User: the front door reads no other header here\n$/);
});

test('an unknown environment variable fails the start with the closest known name, for a server and for a command', (t) => {
  const environment = { ...process.env, STRATA_SECUREPORT: '1' };
  for (const words of [['serve'], ['cache-server'], ['cert', 'admin']]) {
    const { status: code, stderr } = spawnSync(process.execPath, [builtMain(), ...words], { env: environment, encoding: 'utf8' });
    t.is(code, 2);
    t.is(stderr, 'strata: unknown environment variable STRATA_SECUREPORT; did you mean STRATA_SECURE_PORT?\n');
  }
});

test("the command starts where env has no options, as in BusyBox, and keeps V8's young generation small", async (t) => {
  const [first = '', second = ''] = (await readFile(builtMain(), 'utf8')).split('\n');
  await using server = await StrataProcess.start();

  const [program, option] = (await readFile(`/proc/${server.pid}/cmdline`, 'utf8')).split('\0');

  t.is(first, '#!/bin/sh');
  t.notRegex(second, /\benv\b/);
  t.deepEqual([program, option], ['node', '--max-semi-space-size=4'], 'node has replaced the shell');
});
