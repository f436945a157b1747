/**
 * Joins sockets across networks: the test reaches a server in a container's network, and the
 * container reaches a server of the test. A Unix socket in a file works from both networks.
 *
 *   the test ── 127.0.0.1:any ──▶ FILE ──▶ 127.0.0.1:6443   the container's server
 *   the test's server ◀── FILE ◀── 127.0.0.1:7443 ── the container
 *
 * As a program, `socket-bridge.js LISTEN CONNECT …` joins places in its own network, and prints a
 * line once it listens. It ends when its standard input does.
 */
import { once } from 'node:events';
import { createConnection, createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';

/** A port of 127.0.0.1, or the path of a Unix socket. */
export type Place = number | string;

/**
 * Connects each connection to `from` with a new one to `to`; when either ends, so does the other.
 */
export async function bridge(from: Place, to: Place): Promise<Server> {
  const server = createServer((client) => {
    const target = createConnection(typeof to === 'number' ? { port: to, host: '127.0.0.1' } : { path: to });
    client.pipe(target).pipe(client);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => {});
      one.once('close', () => other.destroy());
    }
  });
  if (typeof from === 'number') server.listen(from, '127.0.0.1');
  else server.listen(from);
  await once(server, 'listening');
  return server;
}

function place(text: string): Place {
  return /^\d+$/.test(text) ? Number(text) : text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const places = process.argv.slice(2).map(place);
  for (let at = 0; at < places.length; at += 2) await bridge(places[at]!, places[at + 1]!);
  process.stdout.write('joined\n');
  process.stdin.resume().once('end', () => process.exit(0));
}
