import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { mkdtemp, readFile, readdir, rm, stat, unlink, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type Server } from 'node:tls';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import type { SecureContextPair } from '../../../src/certificates/pair-files.js';
import { ServingCertificate, servingNames } from '../../../src/certificates/serving-certificate.js';
import type { Log } from '../../../src/diagnostics/log.js';

const run = promisify(execFile);
const dayMs = 86_400_000;

/** A clock that the test advances. It begins at the real time, because TLS uses the real time. */
function handClock() {
  let nowMs = Date.now();
  let waiting: { atMs: number; task: () => void }[] = [];
  return {
    now: () => nowMs,
    wallMs: () => nowMs,
    after(delayMs: number, task: () => void) {
      const entry = { atMs: nowMs + delayMs, task };
      waiting.push(entry);
      return () => void (waiting = waiting.filter((other) => other !== entry));
    },
    advance(byMs: number) {
      nowMs += byMs;
      const due = waiting.filter(({ atMs }) => atMs <= nowMs);
      waiting = waiting.filter(({ atMs }) => atMs > nowMs);
      for (const { task } of due) task();
    },
    get waiting() {
      return waiting.length;
    },
  };
}

function listLog(): { log: Log; events: string[] } {
  const events: string[] = [];
  const write = (event: string): void => void events.push(event);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return { log, events };
}

async function folderFor(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-serving-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function openIn(
  directory: string,
  { clock = handClock(), log = listLog().log, bindAddress = '0.0.0.0' } = {},
): Promise<ServingCertificate> {
  return ServingCertificate.open({ clock, log }, { directory, bindAddress, certFile: undefined, keyFile: undefined });
}

async function writePair(folder: string, name: string): Promise<{ certFile: string; keyFile: string; authority: Authority }> {
  const authority = await Authority.create({ clock: handClock() }, { name: `${name} authority`, validityDays: 5 });
  const leaf = await authority.issueServing({ names: [name], validityDays: 5 });
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  await writeFile(files.certFile, leaf.certificatePem);
  await writeFile(files.keyFile, leaf.keyPem);
  return { ...files, authority };
}

async function listen(t: ExecutionContext, server: Server, host = '127.0.0.1'): Promise<number> {
  server.on('tlsClientError', () => {});
  server.listen(0, host);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function handshake(port: number, ca: string, servername: string): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', ca, ...(servername === '' ? {} : { servername }) });
  await once(socket, 'secureConnect');
  socket.destroy();
  return socket.authorized;
}

test('a client that trusts apiserver.crt itself verifies localhost, 127.0.0.1 and the name of the host', async (t) => {
  const folder = await folderFor(t);
  const certificate = await openIn(folder);
  const port = await listen(
    t,
    createServer(certificate.pair, (socket) => socket.end()),
  );
  const ca = await readFile(join(folder, 'apiserver.crt'), 'utf8');

  const verified = await Promise.all(['localhost', '', hostname()].map((name) => handshake(port, ca, name)));

  t.deepEqual(verified, [true, true, true]);
  await t.throwsAsync(handshake(port, ca, 'elsewhere.example'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  const other = await openIn(await folderFor(t));
  await t.throwsAsync(handshake(port, other.pair.cert, 'localhost'));
});

test('curl and openssl verify a server with apiserver.crt as their bundle', async (t) => {
  const folder = await folderFor(t);
  const certificate = await openIn(folder);
  const server = createHttpsServer(certificate.pair, (_, response) => response.end('ok'));
  const port = await listen(t, server);
  const bundle = join(folder, 'apiserver.crt');
  const calls: [string, string[]][] = [
    ['curl', ['--silent', '--cacert', bundle, `https://localhost:${port}/`]],
    ['openssl', ['verify', '-purpose', 'sslserver', '-verify_hostname', 'localhost', '-CAfile', bundle, bundle]],
  ];

  const answers = await Promise.all(calls.map(([program, args]) => run(program, args).catch((error: NodeJS.ErrnoException) => error)));

  for (const answer of answers) {
    if ('code' in answer && answer.code === 'ENOENT') continue;
    t.false(answer instanceof Error, String(answer));
    t.regex((answer as { stdout: string }).stdout, /ok/i);
  }
  t.pass();
});

test('the server keeps the certificate that it made: the next start serves it, and only its owner can read the key', async (t) => {
  const folder = await folderFor(t);
  const first = await openIn(folder);

  const second = await openIn(folder);

  t.deepEqual(second.pair, first.pair);
  t.is((await stat(join(folder, 'apiserver.key'))).mode & 0o777, 0o600);
  t.is(first.pair.cert.match(/BEGIN CERTIFICATE/g)?.length, 2);
  t.deepEqual((await readdir(folder)).toSorted(), ['apiserver.crt', 'apiserver.key']);
});

test('the server replaces an expired certificate that it made', async (t) => {
  const folder = await folderFor(t);
  const clock = handClock();
  const first = await openIn(folder, { clock });
  clock.advance(3651 * dayMs);

  const second = await openIn(folder, { clock });

  t.not(second.pair.cert, first.pair.cert);
});

test('a kept certificate that cannot be used is an error that says which files to remove', async (t) => {
  const folder = await folderFor(t);
  await openIn(folder);
  await writeFile(join(folder, 'apiserver.crt'), 'torn');

  await t.throwsAsync(openIn(folder), { message: /remove .*apiserver\.crt and .*apiserver\.key/ });

  const withoutKey = await folderFor(t);
  await openIn(withoutKey);
  await unlink(join(withoutKey, 'apiserver.key'));
  await t.throwsAsync(openIn(withoutKey), { message: /remove/ });
});

test('after a crash between writing the key and the certificate, the next start replaces the key', async (t) => {
  const folder = await folderFor(t);
  await writeFile(join(folder, 'apiserver.key'), 'left behind');

  const certificate = await openIn(folder);

  t.is(await readFile(join(folder, 'apiserver.key'), 'utf8'), certificate.pair.key);
});

test('a kept certificate that lacks the bind address is used, and the server reports that', async (t) => {
  const folder = await folderFor(t);
  await openIn(folder);
  const { log, events } = listLog();

  await openIn(folder, { log, bindAddress: '192.0.2.7' });

  t.deepEqual(events, ['certificate.names-missing']);
});

test('a specific bind address is a name in the certificate of the server', (t) => {
  t.true(servingNames('192.0.2.7').includes('192.0.2.7'));
  t.true(servingNames('fe80::1%eth0').includes('fe80::1'));
  t.deepEqual(servingNames('0.0.0.0'), servingNames('::'));
  t.is(servingNames('127.0.0.1').filter((name) => name === '127.0.0.1').length, 1);
});

test('the server uses given files, and errors name the wrong file', async (t) => {
  const folder = await folderFor(t);
  const { certFile, keyFile } = await writePair(folder, 'amber.example');
  const { keyFile: otherKey } = await writePair(await folderFor(t), 'birch.example');
  const parts = { clock: handClock(), log: listLog().log };
  const open = (files: { certFile: string; keyFile: string }): Promise<ServingCertificate> =>
    ServingCertificate.open(parts, { ...files, directory: '/nonexistent', bindAddress: '::' });

  t.is((await open({ certFile, keyFile })).pair.cert, await readFile(certFile, 'utf8'));
  await t.throwsAsync(open({ certFile: join(folder, 'absent'), keyFile }), { message: /cannot read the TLS certificate .*absent/ });
  await t.throwsAsync(open({ certFile: keyFile, keyFile }), { message: /tls\.key holds no PEM certificate/ });
  await t.throwsAsync(open({ certFile, keyFile: certFile }), { message: /tls\.crt holds no PEM private key/ });
  await t.throwsAsync(open({ certFile, keyFile: otherKey }), { message: /is not the key of the certificate/ });
});

test('the next client sees a rotated pair without a restart', async (t) => {
  const folder = await folderFor(t);
  const clock = handClock();
  const before = await writePair(folder, 'localhost');
  const { log, events } = listLog();
  const certificate = await ServingCertificate.open(
    { clock, log },
    { certFile: before.certFile, keyFile: before.keyFile, directory: folder, bindAddress: '::' },
  );
  const server = createServer(certificate.pair, (socket) => socket.end());
  const port = await listen(t, server);
  const watch = certificate.watch({ clock }, { filesPollMs: 1000 }, (pair) => server.setSecureContext(pair));

  const after = await writePair(folder, 'localhost');
  await t.throwsAsync(handshake(port, after.authority.certificatePem, 'localhost'));
  clock.advance(1000);

  t.true(await handshake(port, after.authority.certificatePem, 'localhost'));
  t.deepEqual(events, ['certificate.reloaded']);
  watch.close();
  t.is(clock.waiting, 0);
});

test('a half-replaced pair is not served: the old one stays until the new one is complete', async (t) => {
  const folder = await folderFor(t);
  const clock = handClock();
  const { certFile, keyFile } = await writePair(folder, 'localhost');
  const { log, events } = listLog();
  const certificate = await ServingCertificate.open({ clock, log }, { certFile, keyFile, directory: folder, bindAddress: '::' });
  const shown: SecureContextPair[] = [];
  certificate.watch({ clock }, { filesPollMs: 1000 }, (pair) => shown.push(pair));
  const original = certificate.pair;
  const next = await writePair(await folderFor(t), 'localhost');

  await writeFile(certFile, await readFile(next.certFile));
  clock.advance(1000);
  clock.advance(1000);
  t.deepEqual(shown, []);
  t.is(certificate.pair, original);
  await writeFile(keyFile, await readFile(next.keyFile));
  clock.advance(1000);

  t.is(shown.length, 1);
  t.deepEqual(events, ['certificate.reload-failed', 'certificate.reload-failed', 'certificate.reloaded']);
});
