/**
 * The server ends the oldest unproven connection of an address to make room for the next, also one
 * whose handshake is under way. Finds a caller with a certificate that loses its connection so.
 */
import { test } from '../../support/test.js';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { openTls } from '../../support/raw-tls.js';
import { aServer } from '../../support/test-server.js';

test('300 callers with certificates that connect at once from one address (a balancer) all get in', async (t) => {
  const server = await aServer(t);
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const opened = await Promise.allSettled(Array.from({ length: 300 }, () => openTls({ port: server.port, as: amber })));
  for (const each of opened) if (each.status === 'fulfilled') t.teardown(() => each.value.tls.destroy());
  const lost = opened.filter(({ status }) => status === 'rejected').length;
  await sleep(300);
  const closed = opened.filter((each) => each.status === 'fulfilled' && (each.value.tls.destroyed || each.value.tls.readableEnded)).length;
  t.is(lost + closed, 0, `${lost} lost in their handshake, ${closed} after it`);
});

/** The bound in `http/listener.ts`: only so many later handshakes push an earlier one out. */
const handshakesPerAddressMax = 1_000;

test('a master gets in from an address that opens silent connections without end', async (t) => {
  const server = await aServer(t);
  await server.client().create(aPath(), anApiExport({ name: 'one' }));
  const silent = new Set<Socket>();
  t.teardown(() => {
    for (const socket of silent) socket.destroy();
  });
  const connectSilently = (): void => {
    const socket = connect({ host: '127.0.0.1', port: server.port });
    silent.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => silent.delete(socket));
  };

  let failed = 0;
  for (let round = 0; round < 20; round += 1) {
    for (let i = 0; i < 0.8 * handshakesPerAddressMax; i += 1) connectSilently();
    const client = server.client();
    await client.raw('GET', aPath({ name: 'one' })).catch(() => (failed += 1));
    client.close();
  }

  t.is(failed, 0, `${failed} of 20 new connections of a master failed`);
  t.true(silent.size < 20 * 0.8 * handshakesPerAddressMax, 'none was pushed out');
});
