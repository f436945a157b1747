/**
 * What a stop ends first, what it lets complete, and what it keeps open until the grace is over.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { anInstallation, type Installation } from '../../support/proxy/a-front-door.js';
import { connected } from '../../support/proxy/raw-requests.js';

const flags = { 'shutdown-grace': '1m' };
const lasting = [
  'watch?watch=true',
  'watch?watch=1',
  'watch?watch=',
  'watch?limit=1&watch=True',
  'api/v1/watch/pods/watch',
  'watch?follow=true',
];

/** Resolves with everything received once the connection ends. */
function received(t: ExecutionContext, { door }: Installation, request: string) {
  const socket = connected(door);
  t.teardown(() => void socket.destroy());
  const seen = { socket, text: '', isClosed: false };
  socket.on('data', (bytes: Buffer) => (seen.text += bytes.toString('latin1')));
  socket.once('close', () => (seen.isClosed = true));
  socket.write(`${request}\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  return seen;
}

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test.serial(`over ${over}, a stop ends watches at once and cleanly, and lets other requests complete`, async (t) => {
    const { door, amber } = await anInstallation(t, { flags });
    const client = door.client({ http2 });
    const begun = lasting.map((target) => client.raw('GET', `/clusters/root/${target}`, { timeoutMs: 50_000 }));
    await until(() => amber.open.get('watch')?.size === lasting.length);
    const unanswered = client.raw('GET', '/clusters/root/never?watch=1', { timeoutMs: 50_000 });
    const others = (['GET', 'POST'] as const).map((method) =>
      client.raw(method, '/clusters/root/never?watch=false', { timeoutMs: 50_000 }),
    );
    const written = client.raw('POST', '/clusters/root/never?watch=1', { timeoutMs: 50_000 });
    await until(() => amber.open.get('never')?.size === 4);
    let isStopped = false;
    const stopped = door.stop().then(() => (isStopped = true));

    for (const [i, { status, text }] of (await Promise.all(begun)).entries())
      t.deepEqual([status, (JSON.parse(text) as { type: string }).type], [200, 'ADDED'], lasting[i]);
    const { status, headers } = await unanswered;
    t.deepEqual([status, headers['retry-after']], [503, '1'], 'the client may retry elsewhere');
    await until(() => amber.open.get('watch')?.size === 0 && amber.open.get('never')?.size === 3);
    t.false(isStopped, 'a request is in progress');

    for (const response of amber.open.get('never') ?? []) response.end('done');
    for (const answer of await Promise.all([...others, written])) t.like(answer, { status: 200, text: 'done' });
    await stopped;
  });
}

test.serial('a stop ends a watch over a websocket, answered or not, and lets an exec session continue for the grace', async (t) => {
  const installation = await anInstallation(t, { flags: { 'shutdown-grace': '3s' } });
  const { door, amber } = installation;
  const watch = received(t, installation, 'GET /clusters/root/api/v1/pods?watch=1 HTTP/1.1');
  const session = received(t, installation, 'GET /clusters/root/api/v1/namespaces/a/pods/b/exec?stdin=true HTTP/1.1');
  await until(() => [watch, session].every(({ text }) => text.includes(' 101 ')));
  amber.answersUpgrades = false;
  const unanswered = received(t, installation, 'GET /clusters/root/api/v1/pods?watch=true HTTP/1.1');
  await until(() => amber.upgrades === 3);
  const stopped = door.stop();

  await until(() => watch.isClosed && unanswered.isClosed);
  t.regex(unanswered.text, /^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/);
  t.false(session.isClosed);
  session.socket.write('still here');
  await until(() => session.text.endsWith('still here'));
  await stopped;
  await until(() => session.isClosed);
});
