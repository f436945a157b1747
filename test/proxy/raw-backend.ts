/** Backends that answer byte by byte as a test says, because no server of Node's answers so. They take birch's place. */
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { sliceOf } from '../support/raw-pusher.js';
import type { TestAuthority } from '../support/test-authority.js';
import { until } from '../support/test-server.js';
import { aShard, type Installation } from './a-front-door.js';
import { portOf, serving } from './serving.js';

/** Speaks HTTP/1.1. `answer`: called for each request once its headers have come; `reset` ends its connection so. `open`: its connections. */
export async function aRawBackend(
  t: ExecutionContext,
  authority: TestAuthority,
  answer: (socket: TLSSocket, request: string, reset: () => void) => void,
): Promise<{ port: number; open: Set<TLSSocket> }> {
  const open = new Set<TLSSocket>();
  const server = createServer({ ...(await serving(authority)), ALPNProtocols: ['http/1.1'] }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      const reset = (): void => void beneath.get(socket.remotePort)?.resetAndDestroy();
      if (bytes.includes('\r\n\r\n')) answer(socket, bytes.toString('latin1'), reset);
    });
  });
  const beneath = new Map<number | undefined, Socket>();
  server.on('connection', (socket: Socket) => beneath.set(socket.remotePort, socket));
  t.teardown(() => open.forEach((socket) => socket.destroy()));
  return { port: await portOf(t, server), open };
}

/** Resolves once the front door asks there for what is on birch, which must not answer 200 then, nor 502. */
export async function moveBirch({ pushers, door }: Installation, port: number): Promise<void> {
  const shards = sliceOf('shards', { group: 'core.kcp.io' });
  await pushers.amber.acknowledged(pushers.amber.put(shards, [aShard('birch', `https://127.0.0.1:${port}`)], 'v1alpha1'));
  await until(async () => ![200, 502].includes((await door.client().raw('GET', '/clusters/team1/echo')).status));
}
