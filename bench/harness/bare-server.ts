/**
 * The ceiling: what Node's own TLS server can do when it does nothing else. It keeps parsed objects in a Map, forgets
 * everything at its end, checks nothing, and sends every write to every watch; lists are the bytes of a file.
 *
 * A process of its own, like the server it stands for. The benchmark's requests bound its memory: it does not wait for a watch
 * that does not read.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { BareServerAsked, BareServerReply } from './bare-process.js';

const chunkBytes = 256 * 1024;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;
type Stored = { metadata: { name: string; resourceVersion: string } };

const objects = new Map<string, Stored>();
const watches = new Set<ServerResponse>();
const unsent: Buffer[] = [];
let revision = 0;
let list = Buffer.alloc(0);
let watchList = Buffer.alloc(0);

process.on('message', (asked: BareServerAsked) => {
  switch (asked.kind) {
    case 'listen':
      listen(asked.certificatePem, asked.keyPem);
      return;
    case 'serve':
      if (asked.listFile !== undefined) list = readFileSync(asked.listFile);
      if (asked.watchListFile !== undefined) watchList = readFileSync(asked.watchListFile);
      reply({ kind: 'serving' });
      return;
    case 'store':
      throw new Error('this one stores nothing');
  }
});
process.on('disconnect', () => process.exit(0));

function listen(cert: string, key: string): void {
  const server = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1', () => reply({ kind: 'listening', port: (server.address() as AddressInfo).port }));
}

async function answer(request: Request, response: Response): Promise<void> {
  if (request.method !== 'GET') {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(request, 'end');
    write(Buffer.concat(chunks), request.method === 'POST' ? 201 : 200, response as ServerResponse);
    return;
  }
  const url = request.url ?? '';
  response.writeHead(200, { 'content-type': 'application/json' });
  if (url.includes('sendInitialEvents=true')) await send(watchList, response as ServerResponse);
  else if (url.includes('watch=true')) watch(response as ServerResponse);
  else {
    await send(list, response as ServerResponse);
    response.end();
  }
}

function write(body: Buffer, status: number, response: ServerResponse): void {
  const object = JSON.parse(body.toString('utf8')) as Stored;
  object.metadata.resourceVersion = String((revision += 1));
  objects.set(object.metadata.name, object);
  const text = Buffer.from(JSON.stringify(object));
  if (watches.size > 0) announce(Buffer.from(`{"type":"MODIFIED","object":${text.toString('utf8')}}\n`));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(text);
}

/** The changes of one turn of the event loop are one write per watch. */
function announce(event: Buffer): void {
  unsent.push(event);
  if (unsent.length > 1) return;
  setImmediate(() => {
    const events = unsent.length === 1 ? unsent[0]! : Buffer.concat(unsent);
    unsent.length = 0;
    for (const one of watches) one.write(events);
  });
}

function watch(response: ServerResponse): void {
  response.flushHeaders();
  watches.add(response);
  response.on('close', () => watches.delete(response));
}

/** Waits for the client when it is slower; ends when it goes. */
function send(bytes: Buffer, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    let at = 0;
    const more = (): void => {
      for (let open = true; open && at < bytes.length; at += chunkBytes) open = response.write(bytes.subarray(at, at + chunkBytes));
      if (at >= bytes.length) resolve();
    };
    response.on('drain', more);
    response.on('close', resolve);
    more();
  });
}

function reply(message: BareServerReply): void {
  process.send!(message);
}
