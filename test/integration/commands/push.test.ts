/**
 * `strata push` from its options to its frames, with a stand-in for the shard, and a server for the
 * cache that welcomes and acknowledges.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { callerOf } from '../../../src/certificates/caller-from-certificate.js';
import { systemClock } from '../../../src/clock.js';
import { certServing, certShard } from '../../../src/commands/cert.js';
import { push } from '../../../src/commands/push.js';
import { CacheError } from '../../../src/domain/errors.js';
import type { Clock } from '../../../src/domain/ports.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { SocketAcceptor, refuseUpgrade } from '../../../src/frames/accept-socket.js';
import type { Frame } from '../../../src/frames/frame.js';
import type { FrameSocket } from '../../../src/frames/frame-socket.js';
import { execVersion, isRunning, TestPlugin } from '../shard/a-kubeconfig.js';
import { builtMain } from '../../support/project.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { called } from '../../support/commands/called.js';
import { spawn } from '../../support/children.js';

const credit = { mutations: 1_000, bytes: 1_000_000 };
const limits = { frameBytesMax: 1_000_000, frameMutationsMax: 100, bodyBytesMax: 100_000 };
const socketOptions = {
  frameBytesMax: 1_000_000,
  bufferedBytesLow: 1_000,
  bufferedBytesMax: 1_000_000,
  pingIntervalMs: 60_000,
  pongTimeoutMs: 60_000,
  closeGraceMs: 1_000,
};

type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
type Received = { path: string; speaksFor: unknown; frames: Frame[] };
type Place = Readonly<{ flags: Readonly<Record<string, string>>; shard: ShardStandIn; folder: string }>;

/** A shard, a cache and mutually trusted certificates, set up as an operator would. */
async function aPlace(t: ExecutionContext, upgrade: Upgrade): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-push-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const flags = { 'ca-directory': join(folder, 'ca'), 'out-directory': folder };
  await called(certServing, { operands: ['127.0.0.1'], flags });
  await called(certShard, { operands: ['amber'], flags });
  const [cert, key, ca] = await Promise.all(
    ['serving-127.0.0.1.crt', 'serving-127.0.0.1.key', 'ca/ca.crt'].map((name) => readFile(join(folder, name), 'utf8')),
  );
  const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false });
  server.on('upgrade', upgrade);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  return {
    shard,
    folder,
    flags: {
      kubeconfig: shard.kubeconfig,
      'shard-name': 'amber',
      cache: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
      'cache-ca-file': join(folder, 'ca', 'ca.crt'),
      'cert-file': join(folder, 'shard-amber.crt'),
      'key-file': join(folder, 'shard-amber.key'),
      'log-level': 'error',
    },
  };
}

/** Accepts every pusher, and acknowledges every frame at once. */
function welcoming(received: Received[]): Upgrade {
  const acceptor = new SocketAcceptor({ clock: systemClock }, socketOptions);
  return (request, socket, head) => {
    const one: Received = { path: request.url ?? '', speaksFor: callerOf(request.socket as TLSSocket).speaksFor, frames: [] };
    received.push(one);
    void acceptor.accept(request, socket, head).then((accepted) => accepted && serve(accepted, one.frames));
  };
}

async function serve(socket: FrameSocket, frames: Frame[]): Promise<void> {
  for await (const frame of socket.frames()) {
    frames.push(frame);
    if (frame.kind === 'hello') socket.send({ kind: 'welcome', protocol: 1, cacheId: 'c-1', epoch: 1, term: 5, credit, limits });
    const mutations = frame.kind === 'put' ? frame.objects.length : frame.kind === 'delete' ? frame.keys.length : 1;
    if ('sequence' in frame) socket.send({ kind: 'ack', sequence: frame.sequence + mutations - 1, credit });
  }
}

/** A stream for a log, and a reader of what was written to it. */
function aLog(): { logStream: PassThrough; logged: () => string } {
  const logStream = new PassThrough();
  let logged = '';
  logStream.on('data', (chunk: Buffer) => (logged += chunk.toString('utf8')));
  return { logStream, logged: () => logged };
}

function pushing(
  flags: Place['flags'],
  logStream: PassThrough = new PassThrough().resume(),
  clock: Clock = systemClock,
): { printed: () => string; stop: () => void; ended: Promise<unknown> } {
  const stopped = deferred<string>();
  let printed = '';
  const ended = called(push, {
    flags,
    surroundings: { untilStopped: () => stopped.promise, print: (text) => void (printed += text), logStream, clock },
  });
  return { printed: () => printed, stop: () => stopped.resolve('SIGTERM'), ended };
}

test('an agent syncs a shard in full, prints its progress, and leaves when a signal asks it to', async (t) => {
  const received: Received[] = [];
  const { shard, flags } = await aPlace(t, welcoming(received));
  for (const name of ['one', 'two']) shard.store.put('apiexports.apis.kcp.io', 'root', { metadata: { name }, spec: {} });

  const agent = pushing(flags);
  await until(() => /^(\d+) of \1 types synced, 2 objects sent$/m.test(agent.printed()));
  agent.stop();
  await agent.ended;

  const [{ path, speaksFor, frames } = { path: '', speaksFor: undefined, frames: [] }] = received;
  t.is(received.length, 1);
  t.is(path, '/services/cache/connect');
  t.deepEqual(speaksFor, { kind: 'shard', shard: 'amber' });
  t.like(frames[0], { kind: 'hello', role: 'shard', name: 'amber' });
  t.deepEqual(frames.flatMap((frame) => (frame.kind === 'put' ? frame.objects.map(({ name }) => name) : [])).toSorted(), ['one', 'two']);
  t.like(frames.at(-1), { kind: 'bye', reason: 'shutdown' });
});

test('an agent that a signal stops in its first sync prints no progress after that', async (t) => {
  const { shard, flags } = await aPlace(t, welcoming([]));
  // The list of one type never ends, so the sync does not end either.
  shard.instead = ({ pathname }) => pathname.endsWith('/apiexports');
  const clock = new LeapingClock();
  const agent = pushing(flags, undefined, clock);
  const left = (): number => {
    const [, synced, all] = /(\d+) of (\d+) types synced.*\n$/.exec(agent.printed()) ?? [];
    return Number(all) - Number(synced);
  };
  await until(() => {
    clock.leap(1_000);
    return left() === 1;
  });

  const before = agent.printed();
  clock.leap(1_000);
  agent.stop();
  await agent.ended;

  t.is(agent.printed(), before);
});

test('the log names when the certificate that the agent shows to the cache expires', async (t) => {
  const { flags } = await aPlace(t, welcoming([]));
  const { logStream, logged } = aLog();

  const agent = pushing(flags, logStream, { ...systemClock, wallMs: () => Date.now() + 100 * 365 * 86_400_000 });
  await until(() => logged().includes('certificate.expired'));
  agent.stop();
  await agent.ended;

  const line = logged()
    .split('\n')
    .find((each) => each.includes('certificate.expired') && each.includes('"cache"'));
  t.like(JSON.parse(line ?? '{}'), { level: 'error', use: 'cache', file: flags['cert-file'], subject: 'O=strata, CN=amber' });
});

test('an agent that the cache refuses fails, with the reason', async (t) => {
  const status = JSON.stringify({ kind: 'Status', reason: 'Forbidden', message: 'User "amber" cannot push' });
  const { flags } = await aPlace(t, (_, socket) => refuseUpgrade(socket, 403, status));

  const error = await t.throwsAsync(pushing(flags).ended, { instanceOf: CacheError });

  t.is(error.message, 'the cache does not let this agent push for the shard amber (forbidden): User "amber" cannot push');
});

test('an agent whose shard another agent holds says what its operator can do', async (t) => {
  const acceptor = new SocketAcceptor({ clock: systemClock }, socketOptions);
  const { flags } = await aPlace(t, (request, socket, head) => {
    void acceptor.accept(request, socket, head).then((accepted) => accepted?.close('fenced', 'the shard belongs to another'));
  });

  const error = await t.throwsAsync(pushing(flags).ended, { instanceOf: CacheError });

  t.is(
    error.message,
    'the cache does not let this agent push for the shard amber (fenced): the shard belongs to another. If another agent has the shard, ' +
      'start this one again: it waits, or with --take-over it takes the shard at once. If the shard was removed, do not start this agent ' +
      'again, because it would bring the shard back',
  );
});

test('an agent reports a wrong option before it connects to anything', async (t) => {
  const received: Received[] = [];
  const { flags } = await aPlace(t, welcoming(received));

  await t.throwsAsync(pushing({ ...flags, 'cert-file': '/absent.crt' }).ended, { message: /cannot read the TLS certificate/ });
  await t.throwsAsync(pushing({ ...flags, 'cache-ca-file': '/absent.crt' }).ended, { message: /cannot read the CA of the cache/ });
  await t.throwsAsync(pushing({ ...flags, kubeconfig: '/absent' }).ended, { message: /\/absent/ });
  await t.throwsAsync(pushing({ ...flags, context: 'other' }).ended, { message: /there is no context "other"/ });

  t.deepEqual(received, []);
});

test('as a process it ends with 0 when a signal stops it, and with 1 and one line when the cache refuses it', async (t) => {
  const received: Received[] = [];
  const taken = await aPlace(t, welcoming(received));
  const refused = await aPlace(t, (_, socket) => refuseUpgrade(socket, 403, '{"reason":"Forbidden","message":"not you"}'));

  const agent = aProcess(taken.flags);
  await until(() => received.some(({ frames }) => frames.length > 0));
  agent.child.kill('SIGTERM');
  const refusedAgent = aProcess(refused.flags);

  t.is(await agent.exited, 0, agent.stderr());
  t.is(await refusedAgent.exited, 1);
  t.is(refusedAgent.stderr().split('\n').at(-2), 'strata: the cache does not let this agent push for the shard amber (forbidden): not you');
});

test('a signal ends the process and its exec plugin, even while the plugin hangs', async (t) => {
  const { flags, shard, folder } = await aPlace(t, welcoming([]));
  const plugin = await TestPlugin.make(folder, 'exec sleep 600');
  const kubeconfig = await plugin.kubeconfig(shard, { apiVersion: execVersion });
  const agent = aProcess({ ...flags, kubeconfig });
  t.teardown(async () => {
    agent.child.kill('SIGKILL');
    for (const pid of await plugin.runs()) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  await until(async () => (await plugin.runs()).length > 0);
  const [pid = 0] = await plugin.runs();

  agent.child.kill('SIGTERM');
  await until(() => agent.child.exitCode !== null, 4_000);

  t.is(await agent.exited, 0, agent.stderr());
  t.false(isRunning(pid));
});

test('the agent warns when the certificate for the shard is about to expire', async (t) => {
  const { flags, shard, folder } = await aPlace(t, welcoming([]));
  await mkdir(join(folder, 'ca-of-shard'));
  const authority = new TestAuthority(join(folder, 'ca-of-shard'));
  const { certificateFile, keyFile } = authority.issue({ user: 'agent', groups: [], validitySeconds: 0 });
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, shard.kubeconfigText({ 'client-certificate': certificateFile, 'client-key': keyFile }));
  const { logStream, logged } = aLog();

  const agent = pushing({ ...flags, kubeconfig }, logStream);
  await until(() => logged().includes('certificate.expired'));
  agent.stop();
  await agent.ended;

  const line =
    logged()
      .split('\n')
      .find((each) => each.includes('certificate.expired')) ?? '{}';
  t.like(JSON.parse(line), { level: 'error', use: 'shard', file: certificateFile, subject: 'CN=agent' });
});

function aProcess(flags: Place['flags']): { child: ChildProcess; stderr: () => string; exited: Promise<number | null> } {
  const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const child = spawn(process.execPath, [builtMain(), 'push', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const exited = once(child, 'close').then(([code]: (number | null)[]) => code ?? null);
  return { child, stderr: () => stderr, exited };
}
