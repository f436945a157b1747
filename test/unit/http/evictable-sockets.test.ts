/** Which connection makes room for others before its client has shown a certificate. */
import { test } from '../../support/test.js';
import type { Socket } from 'node:net';
import { networkOf, EvictableSockets } from '../../../src/http/evictable-sockets.js';

const end = (address: string, port: number) => ({ end: `10.0.0.1 ${address} ${port}`, network: networkOf(address) });

function aSocket(): { socket: Socket; state: { destroyed: boolean } } {
  const state = { destroyed: false };
  return { socket: { destroy: () => (state.destroyed = true) } as unknown as Socket, state };
}

test('an IPv6 peer counts as its /64, and an IPv4 peer as its address in every spelling', (t) => {
  t.is(networkOf('192.0.2.7'), '192.0.2.7');
  t.is(networkOf('::ffff:192.0.2.7'), '192.0.2.7');
  t.is(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2');
  t.is(networkOf('2001:db8:1:2::6'), '2001:db8:1:2');
  t.is(networkOf('2001:db8::6'), '2001:db8:0:0');
  t.is(networkOf('::1'), '0:0:0:0');
});

test('the oldest socket makes room: of the given network, or of the one with the most sockets', (t) => {
  const sockets = new EvictableSockets();
  const [a, b, c] = [aSocket(), aSocket(), aSocket()];
  sockets.add(end('192.0.2.1', 1), a.socket);
  sockets.add(end('192.0.2.2', 2), b.socket);
  sockets.add(end('192.0.2.2', 3), c.socket);

  t.true(sockets.dropOldest());
  t.deepEqual(
    [a, b, c].map(({ state }) => state.destroyed),
    [false, true, false],
  );
  t.is(sockets.count(end('192.0.2.2', 0)), 1);
  t.true(sockets.dropOldest('192.0.2.1'));
  t.true(a.state.destroyed);
  t.true(sockets.dropOldest());
  t.false(sockets.dropOldest());
});

test('closing a socket does not also remove the next one of the same peer', (t) => {
  const sockets = new EvictableSockets();
  const [old, next] = [aSocket(), aSocket()];
  const same = end('192.0.2.1', 1);
  sockets.add(same, old.socket);
  sockets.add(same, next.socket);

  sockets.delete(same, old.socket);
  t.is(sockets.count(same), 1);
  sockets.delete(same, next.socket);
  t.is(sockets.count(same), 0);
});
