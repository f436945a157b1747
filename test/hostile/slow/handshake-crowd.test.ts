/** The oldest unproven connection of an address makes room for the next, also one whose handshake is under way. */
import test from 'ava';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { openTls } from '../../support/raw-tls.js';
import { aServer } from '../../support/test-server.js';

test('300 callers with certificates that come at once from one address (a balancer) all get in', async (t) => {
  const server = await aServer(t);
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const opened = await Promise.allSettled(Array.from({ length: 300 }, () => openTls({ port: server.port, as: amber })));
  for (const each of opened) if (each.status === 'fulfilled') t.teardown(() => each.value.tls.destroy());
  const lost = opened.filter(({ status }) => status === 'rejected').length;
  await sleep(300);
  const closed = opened.filter((each) => each.status === 'fulfilled' && (each.value.tls.destroyed || each.value.tls.readableEnded)).length;
  t.is(lost + closed, 0, `${lost} lost in their handshake, ${closed} after it`);
});

test('a flood of silent connections from the same address keeps no master out', async (t) => {
  const server = await aServer(t);
  await server.client().create(aPath(), anApiExport({ name: 'one' }));
  let going = true;
  const flood = (async () => {
    while (going) {
      for (let i = 0; i < 60; i += 1) {
        const socket = connect({ host: '127.0.0.1', port: server.port });
        socket.on('error', () => {});
        socket.on('connect', () => setTimeout(() => socket.destroy(), 2000));
      }
      await sleep(10);
    }
  })();
  await sleep(300);
  let failed = 0;
  for (let i = 0; i < 20; i += 1) {
    const client = server.client();
    await client.raw('GET', aPath({ name: 'one' }), { timeoutMs: 3000 }).catch(() => (failed += 1));
    client.close();
  }
  going = false;
  await flood;
  t.is(failed, 0, `${failed} of 20 new connections of a master failed`);
});
