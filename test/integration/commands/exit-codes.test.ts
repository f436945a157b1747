/**
 * The exit codes of every command: of help, of a wrong call and of a failure, and the codes that
 * one command has of its own.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { commands } from '../../../src/commands/commands.js';
import type { Surroundings } from '../../../src/commands/command.js';
import { resolve } from '../../../src/commands/resolve.js';
import { programResult } from '../../support/commands/run-program.js';
import { builtMain } from '../../support/project.js';
import { syncPaths } from '../../support/path-pusher.js';
import { RawPusher } from '../../support/raw-pusher.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aServer, until } from '../../support/test-server.js';
import { spawn } from '../../support/children.js';

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-exit-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const exitCode = async (args: readonly string[]): Promise<number> => (await programResult(args)).exitCode;

/** A correct call of each command that must fail. */
function failing(folder: string): Readonly<Record<string, readonly string[]>> {
  const absent = join(folder, 'absent');
  const asked = ['--cache=https://127.0.0.1:1', `--cert-file=${absent}`, `--key-file=${absent}`];
  const stored = [`--data-directory=${absent}`];
  const cert = [`--ca-directory=${join(folder, 'file', 'ca')}`];
  return {
    push: [`--kubeconfig=${absent}`, '--shard-name=amber', ...asked],
    status: asked,
    resolve: ['root', ...asked],
    identities: asked,
    console: asked,
    kubeconfig: asked,
    backup: [absent, ...stored],
    restore: [absent, ...stored],
    check: [absent],
    copy: ['--from=sqlite', '--to=sqlite'],
    'shards list': asked,
    'shards remove': ['amber', ...asked],
    'caches list': asked,
    'caches forget': ['eu', ...asked],
    'removals confirm': ['amber', ...asked],
    'cert shard': ['amber', ...cert],
    'cert cache': ['eu', ...cert],
    'cert reader': ['me', ...cert],
    'cert syncer': ['me', ...cert],
    'cert admin': cert,
    'cert serving': ['localhost', ...cert],
  };
}

test('for every command, help ends with 0 and lists the exit codes, a wrong call ends with 2, and a failure with 1', async (t) => {
  const folder = await aFolder(t);
  await writeFile(join(folder, 'file'), '');
  const calls = failing(folder);
  t.deepEqual(
    Object.keys(calls),
    commands.map((command) => command({} as Surroundings).words.join(' ')),
  );
  for (const [name, args] of Object.entries(calls)) {
    const words = name.split(' ');
    t.is(await exitCode([...words, '--help']), 0, name);
    t.is(await exitCode([...words, ...args, '--no-such-flag']), 2, name);
    if (name !== 'copy') t.is(await exitCode([...words, ...args]), 1, name);
  }
});

test('`strata resolve` ends with 0 for a found path, 3 for an unknown one, 4 for an uncertain or disputed one', async (t) => {
  const cache = await aServer(t);
  const pusher = await RawPusher.open(cache, { name: 'root' });
  t.teardown(() => pusher.socket.terminate());
  const flags = [`--cache=${cache.url}`, `--ca-file=${cache.certificateFile}`, ...asMaster(cache.master)];
  const printed: string[] = [];
  const codeOf = async (path: string): Promise<number> => {
    const { exitCode: code, stdout } = await programResult(['resolve', path, ...flags]);
    printed.push(stdout);
    return code;
  };

  t.is(await codeOf('root:nowhere'), 4);
  await syncPaths(pusher, 'root', {
    clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org' } },
    workspaces: { 'root org': { cluster: 'org1' }, 'root moved': { cluster: 'org1', shard: 'birch' } },
  });
  await until(async () => (await codeOf('root:nowhere')) === 3);
  t.is(await codeOf('root'), 0);
  t.is(await codeOf('root:org'), 0);
  t.is(await codeOf('root:moved'), 4);
  t.is(await codeOf(''), 2);
  t.true(printed.some((text) => text.includes('is unknown')));
  t.true(Object.keys(resolve({} as Surroundings).exitCodes ?? {}).join() === '3,4');
});

function asMaster({ certificateFile, keyFile }: Readonly<{ certificateFile: string; keyFile: string }>): readonly string[] {
  return [`--cert-file=${certificateFile}`, `--key-file=${keyFile}`];
}

type Running = Readonly<{ child: ChildProcess; stderr: () => string; exited: Promise<readonly [number | null, NodeJS.Signals | null]> }>;

function running(t: ExecutionContext, args: readonly string[]): Running {
  const child = spawn(builtMain(), args, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return { child, stderr: () => stderr, exited: once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]> };
}

test('SIGUSR1 opens no inspector and SIGUSR2 ends nothing, for a server', async (t) => {
  const folder = await aFolder(t);
  const server = running(t, ['serve', `--root-directory=${folder}`, '--bind-address=127.0.0.1', '--secure-port=0', '--allow-no-client-ca']);
  await until(() => server.stderr().includes('"event":"server.started"'), 45_000);

  for (let sent = 0; sent < 3; sent += 1) {
    server.child.kill('SIGUSR1');
    server.child.kill('SIGUSR2');
  }
  server.child.kill('SIGHUP');
  // The server handles signals in order, so the earlier ones were handled before this one.
  await until(() => server.stderr().includes('"event":"server.reloaded"'));
  server.child.kill('SIGTERM');

  t.deepEqual(await server.exited, [0, null]);
  t.false(/debugger|inspector/i.test(server.stderr()), server.stderr());
});

test('a command that is the first process of a container ends at SIGTERM, though it has no handler for it', async (t) => {
  const apart = ['--map-root-user', '--pid', '--fork', '--kill-child'];
  const { status, error, stderr } = spawnSync('unshare', [...apart, 'true'], { encoding: 'utf8' });
  if (status !== 0) {
    t.log(`SKIPPED: no first process can be made here: ${error?.message ?? stderr}`);
    t.pass();
    return;
  }
  const folder = await aFolder(t);
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const asked = once(silent, 'connection');
  const { certificateFile, keyFile } = new TestAuthority(folder).issue({ user: 'me', groups: [] });
  const { port } = silent.address() as AddressInfo;
  const flags = [`--cache=https://127.0.0.1:${port}`, `--cert-file=${certificateFile}`, `--key-file=${keyFile}`, '--timeout=1h'];
  const outside = spawn('unshare', [...apart, builtMain(), 'status', ...flags], { stdio: 'ignore' });
  const exited = once(outside, 'close');
  await asked;

  const first = readFileSync(`/proc/${outside.pid}/task/${outside.pid}/children`, 'utf8');
  process.kill(Number(first), 'SIGTERM');

  t.deepEqual(await exited, [128 + 15, null]);
});

test('an error about a port in use names the option that chooses another port', async (t) => {
  const folder = await aFolder(t);
  const holder = createServer();
  holder.listen(0, '127.0.0.1');
  await once(holder, 'listening');
  t.teardown(() => holder.close());
  const { port } = holder.address() as AddressInfo;
  const serve = (...flags: readonly string[]): Running => running(t, ['serve', `--root-directory=${folder}`, ...flags]);

  const taken = serve('--bind-address=127.0.0.1', `--secure-port=${port}`);
  t.deepEqual(await taken.exited, [1, null]);
  t.regex(taken.stderr(), new RegExp(`cannot listen at 127\\.0\\.0\\.1:${port}: .*--secure-port \\(STRATA_SECURE_PORT\\)`));

  const elsewhere = serve('--bind-address=192.0.2.1', '--secure-port=0');
  t.deepEqual(await elsewhere.exited, [1, null]);
  t.regex(elsewhere.stderr(), /cannot listen at 192\.0\.2\.1:0: .*--bind-address \(STRATA_BIND_ADDRESS\)/);
  t.is(statSync(join(folder, 'data', 'strata.db-wal')).size, 0, 'the store is closed in order');
});

test('a server reports a serving certificate as made only once it is in its file', async (t) => {
  const folder = await aFolder(t);
  // A non-empty folder where the server would write the key makes the write fail.
  await mkdir(join(folder, 'apiserver.key', 'x'), { recursive: true });
  const server = running(t, ['serve', `--root-directory=${folder}`, '--bind-address=127.0.0.1', '--secure-port=0']);

  t.deepEqual(await server.exited, [1, null]);
  t.false(server.stderr().includes('certificate.made'), server.stderr());
  t.regex(server.stderr(), /cannot keep a serving certificate in .*apiserver\.crt/);
});
