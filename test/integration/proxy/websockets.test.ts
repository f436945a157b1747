import { connect, type TLSSocket } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Certificate } from '../../support/test-authority.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';

const upgrade = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

function aConnection(t: ExecutionContext, { port }: TestServer, { certificate: cert, key }: Pick<Certificate, 'certificate' | 'key'>) {
  const socket: TLSSocket = connect({ host: '127.0.0.1', port, cert, key, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  t.teardown(() => void socket.destroy());
  const seen = { socket, text: '', isClosed: false };
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => (seen.text += bytes.toString()));
  socket.once('close', () => (seen.isClosed = true));
  return seen;
}

test.serial('a websocket ends when the certificate that opened it expires', async (t) => {
  const { door } = await anInstallation(t);
  const short = door.authority.issue({ user: 'alice', groups: [], validitySeconds: 6 });
  const [ending, lasting] = [aConnection(t, door, short), aConnection(t, door, door.master)];
  for (const { socket } of [ending, lasting]) socket.write(upgrade('/clusters/root:org/exec'));
  await until(() => [ending, lasting].every(({ text }) => text.includes(' 101 ')));
  await until(() => ending.isClosed);
  t.false(lasting.isClosed);
  lasting.socket.write('still here');
  await until(() => lasting.text.endsWith('still here'));
});

test.serial('an upgrade sent before an earlier request is answered ends the connection, and does not begin', async (t) => {
  const { door, amber } = await anInstallation(t);
  const behind = aConnection(t, door, door.master);
  behind.socket.write('GET /clusters/root/watch?watch=1 HTTP/1.1\r\nHost: door\r\n\r\n');
  await until(() => behind.text.includes('begun'));
  const before = amber.asked;
  behind.socket.write(upgrade('/clusters/root:org/exec'));
  await until(() => behind.isClosed);
  await sleep(200);
  t.notRegex(behind.text, / 101 /);
  t.is(amber.asked, before);
});

test.serial('an invalid answer of a backend to an upgrade is 502', async (t) => {
  const { door } = await anInstallation(t, { birchSpeaks: 1 });
  for (const status of ['999', '600']) {
    const asked = aConnection(t, door, door.master);
    asked.socket.write(upgrade(`/clusters/root:org:team/odd?status=${status}`));
    await until(() => asked.isClosed);
    t.regex(asked.text, /^HTTP\/1\.1 502 /, status);
  }
});
