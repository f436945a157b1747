/**
 * Refused upgrades must leave no connection behind, whatever their clients do, and open upgrades of
 * one address count.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Certificate } from '../../support/test-authority.js';
import { openTls } from '../../support/raw-tls.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { aRawBackend, moveBirch } from '../../support/proxy/raw-backend.js';

type Opened = { readonly socket: Socket; readonly tls: TLSSocket; text: string; hasEnded: boolean };

/** Sends the request, and keeps its own side open. It reads the answer unless it is `deaf`. */
async function sent(
  t: ExecutionContext,
  { port, master }: TestServer,
  request: string,
  { as = master, deaf = false }: Readonly<{ as?: Certificate | null; deaf?: boolean }> = {},
): Promise<Opened> {
  const { tls, tcp } = await openTls({ port, as }, { ALPNProtocols: ['http/1.1'] });
  tcp.allowHalfOpen = true;
  tls.allowHalfOpen = true;
  t.teardown(() => void tcp.destroy());
  const opened: Opened = { socket: tcp, tls, text: '', hasEnded: false };
  if (!deaf) tls.on('data', (bytes: Buffer) => (opened.text += bytes.toString('latin1')));
  tls.once('end', () => (opened.hasEnded = true));
  tls.once('close', () => (opened.hasEnded = true));
  tls.write(request);
  if (deaf) tls.pause();
  return opened;
}

function upgrade(target: string, { protocol = 'websocket', method = 'GET', headers = '', more = '' } = {}): string {
  return `${method} ${target} HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${headers}\r\n${more}`;
}

/**
 * Open HTTP/1.1 connections and websockets at the front door. The request for metrics uses HTTP/2,
 * so it does not count.
 */
async function held(door: TestServer): Promise<number> {
  const { text } = await door.client({ http2: true }).raw('GET', '/metrics');
  return [...text.matchAll(/^strata_connections_open\{[^}]*protocol="(?:HTTP\/1\.1|websocket)"[^}]*\} (\d+)$/gm)]
    .map(([, value]) => Number(value))
    .reduce((sum, value) => sum + value, 0);
}

test.serial('a refused upgrade leaves no connection, though its client keeps its side open', async (t) => {
  t.timeout(120_000);
  const { door, amber } = await anInstallation(t, { birchSpeaks: 1 });
  const folder = await mkdtemp(join(tmpdir(), 'strata-stranger-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const stranger = new TestAuthority(folder).issue({ user: 'mallory', groups: [] });
  const before = await held(door);
  const refused: readonly (readonly [request: string, status: number, as?: Certificate | null])[] = [
    [upgrade('/clusters/root:org/exec', { protocol: 'SPDY/3.1' }), 502],
    [upgrade('/clusters/root:org/exec', { method: 'POST' }), 502],
    [upgrade('/clusters/root:nope/exec'), 403],
    [upgrade('/clusters/root:org/exec', { headers: 'Content-Length: 5\r\n', more: 'bytes' }), 400],
    [upgrade('/clusters/root:org/exec', { headers: 'Transfer-Encoding: chunked\r\n', more: '5\r\nbytes\r\n0\r\n\r\n' }), 400],
    [upgrade('/readyz'), 404],
    [upgrade('/nowhere'), 404],
    [upgrade('/clusters/root\\org'), 400],
    [upgrade('/clusters/root:org:off/exec'), 503],
    [upgrade('/clusters/root:org:team/odd?status=403'), 403],
    [upgrade('/clusters/root:org:team/odd?status=999'), 502],
    [upgrade('/clusters/root:org/exec'), 401, stranger],
    [upgrade('/clusters/root:nope/exec'), 403, null],
  ];
  for (const [request, status, as] of refused) {
    const opened = await Promise.all(Array.from({ length: 2 }, () => sent(t, door, request, as === undefined ? {} : { as })));
    const deaf = await Promise.all(
      Array.from({ length: 2 }, () => sent(t, door, request, { deaf: true, ...(as !== undefined && { as }) })),
    );
    await until(() => opened.every(({ hasEnded }) => hasEnded));
    for (const { text } of opened) t.regex(text, new RegExp(`^HTTP/1\\.1 ${status} `), request);
    await until(async () => (await held(door)) === before, 20_000);
    for (const { socket } of deaf) socket.destroy();
  }
  t.is(amber.upgrades, 0);
});

test.serial('a long refusal of a backend is kept only for as long as a client may take to read it', async (t) => {
  t.timeout(120_000);
  const installation = await anInstallation(t);
  const { door } = installation;
  const long = `HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(1_000_000)}`;
  const { port } = await aRawBackend(t, door.authority, (socket, request) =>
    socket.write(request.includes('/exec') ? long : 'HTTP/1.1 418 No Coffee\r\nContent-Length: 0\r\n\r\n'),
  );
  await moveBirch(installation, port);
  const before = await held(door);
  const reading = await sent(t, door, upgrade('/clusters/team1/exec'));
  await until(() => reading.hasEnded);
  t.is(reading.text.split('\r\n\r\n')[1]?.length, 1_000_000);
  await Promise.all(Array.from({ length: 5 }, () => sent(t, door, upgrade('/clusters/team1/exec'), { deaf: true })));
  await until(async () => (await held(door)) > before);
  await until(async () => (await held(door)) === before, 20_000);
  t.pass();
});

test.serial('an upgrade whose client leaves before the answer is aborted at the backend', async (t) => {
  const { door, amber } = await anInstallation(t);
  amber.answersUpgrades = false;
  const before = await held(door);
  for (const more of ['', 'x'.repeat(1_000)])
    for (const how of ['goodbye', 'fin', 'reset'] as const) {
      const asked = amber.upgrades;
      const connections = amber.connections;
      const { socket, tls } = await sent(t, door, upgrade('/clusters/root:org/exec', { more }));
      await until(() => amber.upgrades === asked + 1);
      if (how === 'goodbye') tls.end();
      if (how === 'fin') socket.end();
      if (how === 'reset') socket.resetAndDestroy();
      await until(async () => (await held(door)) === before && amber.connections <= connections);
    }
  t.pass();
});

test.serial('what a client sends before the answer reaches the backend in order, and the front door buffers only a little', async (t) => {
  const { door } = await anInstallation(t);
  const early = Array.from({ length: 20_000 }, (_, i) => `${i} `).join('');
  const opened = await sent(t, door, upgrade('/clusters/root:org/exec', { more: early }));
  await until(() => opened.text.endsWith('19999 '));
  t.is(opened.text.split('\r\n\r\n')[1], early);
});

test.serial('upgrades count as watches of their caller; callers without a certificate are counted by address', async (t) => {
  const { door, amber } = await anInstallation(t, { flags: { 'open-watches-max': '100' } });
  const opened = await Promise.all(Array.from({ length: 12 }, () => sent(t, door, upgrade('/clusters/root:org/exec'), { as: null })));
  await until(() => opened.every(({ text }) => text.includes('\r\n\r\n')));
  const statuses = opened.map(({ text }) => text.split(' ')[1]);
  // All callers without a certificate share a tenth of the maximum.
  t.is(statuses.filter((status) => status === '101').length, 10);
  t.is(statuses.filter((status) => status === '429').length, 2);
  t.is(amber.upgrades, 10);
  for (const { socket } of opened) socket.destroy();
  await until(async () => {
    const again = await sent(t, door, upgrade('/clusters/root:org/exec'), { as: null });
    await until(() => again.text.includes('\r\n\r\n'));
    return again.text.includes(' 101 ');
  });
});
