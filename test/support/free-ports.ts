/**
 * Ports for programs that keep their port across restarts. While this process lives, no other
 * process of the tests gets the same port, even if nothing listens on it: this process holds the
 * UDP port of that number.
 * The ports are below those that a system assigns to whoever listens on port 0 or connects (from
 * 32768 on Linux, from 49152 elsewhere). Otherwise another program could take the port of our
 * server, or be mistaken for it.
 */
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const lowest = 10_000;
const above = 32_768;

export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(lowest, above);
    if ((await tryHold(port)) && (await isUnused(port))) ports.push(port);
  }
  return ports;
}

/** Holds the port until this process or thread ends; false if another one holds it. */
async function tryHold(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref();
  socket.bind({ port, address: '127.0.0.1', exclusive: true });
  const hasBound = await listens(socket);
  if (!hasBound) socket.close();
  return hasBound;
}

async function isUnused(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  if (!(await listens(server))) return false;
  server.close();
  await once(server, 'close');
  return true;
}

function listens(opened: Socket | Server): Promise<boolean> {
  return once(opened, 'listening').then(
    () => true,
    () => false,
  );
}
