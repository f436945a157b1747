/** Requests that no well-behaved client makes, over HTTP/1.1 and HTTP/2. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { RawHttp2 } from '../raw-http2.js';
import type { TestServer } from '../test-server.js';
import type { Echoed } from './echo-backend.js';

type Raw = Readonly<{ target: string; http2: boolean }>;

/** Sends a body without a length, with any method. */
export async function chunked(
  door: TestServer,
  { method, target, body, http2 }: Raw & Readonly<{ method: string; body: string }>,
): Promise<Echoed> {
  const tls = { cert: door.master.certificate, key: door.master.key, rejectUnauthorized: false };
  if (http2) {
    const session = connectHttp2(door.url, tls);
    const stream = session.request({ ':path': target, ':method': method }, { endStream: false });
    stream.end(body);
    const echoed = JSON.parse(await text(stream)) as Echoed;
    session.destroy();
    return echoed;
  }
  const outgoing = request(`${door.url}${target}`, { ...tls, method, agent: false, headers: { 'transfer-encoding': 'chunked' } });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream];
  return JSON.parse(await text(answer)) as Echoed;
}

/** Sends half a body and breaks the request off once that half has arrived. */
export async function brokenOff(
  door: TestServer,
  { target, http2, arrived }: Raw & Readonly<{ arrived: () => Promise<void> }>,
): Promise<void> {
  const tls = { cert: door.master.certificate, key: door.master.key, rejectUnauthorized: false };
  if (http2) {
    // A raw client, because Node's ends a body before it resets the stream.
    const client = await RawHttp2.open({ port: door.port, as: door.master });
    const stream = client.request('POST', target, { ends: false });
    client.data(stream.id, Buffer.from('kind: half of it\n'));
    await arrived();
    client.reset(stream.id);
    client.socket.end();
    return;
  }
  const outgoing = request(`${door.url}${target}`, { ...tls, method: 'POST', agent: false, headers: { 'transfer-encoding': 'chunked' } });
  outgoing.on('error', () => {});
  outgoing.write('kind: half of it\n');
  await arrived();
  outgoing.destroy();
}

/** Sends these bytes; returns everything that is received until the connection ends. */
export async function asked(door: TestServer, bytes: string): Promise<string> {
  const socket = connected(door);
  socket.write(bytes);
  return text(socket);
}

/** For bytes that no client sends. Errors are ignored, because the connection ends with them. */
export function connected({ port, master }: TestServer): TLSSocket {
  const { certificate: cert, key } = master;
  const socket = connect({ host: '127.0.0.1', port, cert, key, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  socket.on('error', () => {});
  return socket;
}
