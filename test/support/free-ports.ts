/**
 * Ports for programs that keep their port across restarts. While this process lives, no other
 * process of the tests gets the same port, even if nothing listens on it: this process holds the
 * UDP port of that number.
 * The ports are below those that a system assigns to whoever listens on port 0 or connects (from
 * 32768 on Linux, from 49152 elsewhere). Otherwise another program could take the port of our
 * server, or be mistaken for it.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once, type EventEmitter } from 'node:events';
import { connect } from 'node:net';

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
  const hasBound = await happens(socket, 'listening');
  if (!hasBound) socket.close();
  return hasBound;
}

/**
 * Whether nothing listens there. This is asked by connecting: a child that another thread starts
 * holds the listening sockets of this process until it executes its program.
 */
export async function isUnused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isUsed = await happens(socket, 'connect');
  socket.destroy();
  return !isUsed;
}

function happens(emitter: EventEmitter, event: string): Promise<boolean> {
  return once(emitter, event).then(
    () => true,
    () => false,
  );
}
