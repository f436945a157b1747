/**
 * The ceiling over HTTP: what Node's own TLS server can do if it does nothing else. It parses each
 * object, keeps it in a Map, and checks nothing. It sends every write to every watch of its
 * collection. Lists are prepared bytes. When it ends, all objects are gone.
 *
 * It is a process of its own, like the measured server. The benchmark's requests bound its memory:
 * it does not wait for a watch that does not read.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { BareServerAsked, BareServerReply } from './bare-process.js';

const chunkBytes = 256 * 1024;
const streamsMax = 100;
const collectionSegments = 11;
const typeSegment = 7;

type Request = IncomingMessage | Http2ServerRequest;
type Response = Pick<ServerResponse, 'writeHead' | 'flushHeaders' | 'write' | 'end' | 'on' | 'off'>;
type Scope = Readonly<{ shard: string; cluster: string; resource: string }>;
type Stored = Readonly<{ scope: Scope; text: Buffer }>;
type Parsed = { metadata: { resourceVersion: string } };

const objects = new Map<string, Stored>();
const watches = new Map<Response, Scope>();
let unsent: { scope: Scope; event: Buffer }[] = [];
let revision = 1;
/** Lists and initial events as last sent, by path. A write clears them. */
const ready = new Map<string, Buffer>();

process.on('message', (asked: BareServerAsked) => {
  switch (asked.kind) {
    case 'listen':
      listen(asked.certificatePem, asked.keyPem);
      return;
    case 'store':
      throw new Error('this one stores nothing');
  }
});
process.on('disconnect', () => process.exit(0));

function listen(cert: string, key: string): void {
  const server = createSecureServer(
    { cert, key, allowHTTP1: true, settings: { maxConcurrentStreams: streamsMax } },
    (request: Request, response: ServerResponse | Http2ServerResponse) => void answer(request, response as Response),
  );
  server.listen(0, '127.0.0.1', () => reply({ kind: 'listening', port: (server.address() as AddressInfo).port }));
}

async function answer(request: Request, response: Response): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  switch (request.method) {
    case 'POST':
      return write({ path, status: 201, body: await readBody(request) }, response);
    case 'PUT':
      return write({ path: path.slice(0, path.lastIndexOf('/')), status: 200, body: await readBody(request) }, response);
    case 'DELETE':
      objects.delete(path);
      ready.clear();
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    default:
      return await read(path, query, response);
  }
}

async function read(path: string, query: string, response: Response): Promise<void> {
  const stored = objects.get(path);
  if (stored !== undefined) {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': stored.text.length });
    response.end(stored.text);
    return;
  }
  const scope = scopeOf(path);
  response.writeHead(200, { 'content-type': 'application/json' });
  if (query.includes('sendInitialEvents=true')) await send(initialEvents(path, scope), response);
  if (query.includes('watch=true')) {
    response.flushHeaders();
    watches.set(response, scope);
    response.on('close', () => watches.delete(response));
    return;
  }
  await send(query.includes('limit=1') ? listOf([]) : kept(path, () => listOf(within(scope))), response);
  response.end();
}

function write({ path, status, body }: Readonly<{ path: string; status: number; body: Buffer }>, response: Response): void {
  const object = JSON.parse(body.toString('utf8')) as Parsed & { metadata: { name: string } };
  object.metadata.resourceVersion = String((revision += 1));
  const text = Buffer.from(JSON.stringify(object));
  const scope = scopeOf(path);
  objects.set(`${path}/${object.metadata.name}`, { scope, text });
  ready.clear();
  if (watches.size > 0) announce(scope, Buffer.concat([Buffer.from('{"type":"MODIFIED","object":'), text, Buffer.from('}\n')]));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(text);
}

/** The changes of one turn of the event loop are one write to each watch. */
function announce(scope: Scope, event: Buffer): void {
  unsent.push({ scope, event });
  if (unsent.length > 1) return;
  setImmediate(() => {
    const changes = unsent;
    unsent = [];
    for (const [response, watched] of watches) {
      const events = changes.filter((change) => covers(watched, change.scope)).map((change) => change.event);
      if (events.length > 0) response.write(events.length === 1 ? events[0]! : Buffer.concat(events));
    }
  });
}

function scopeOf(path: string): Scope {
  const segments = decodeURIComponent(path).split('/').slice(0, collectionSegments);
  return { shard: segments[4] ?? '', cluster: segments[6] ?? '', resource: segments.slice(typeSegment).join('/') };
}

function covers(watched: Scope, { shard, cluster, resource }: Scope): boolean {
  return (
    watched.resource === resource &&
    (watched.shard === '*' || watched.shard === shard) &&
    (watched.cluster === '*' || watched.cluster === cluster)
  );
}

function within(scope: Scope): readonly Buffer[] {
  return [...objects.values()].filter((stored) => covers(scope, stored.scope)).map(({ text }) => text);
}

function listOf(texts: readonly Buffer[]): Buffer {
  const head = Buffer.from(`{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"${revision}"},"items":[`);
  const comma = Buffer.from(',');
  return Buffer.concat([head, ...texts.flatMap((text, at) => (at === 0 ? [text] : [comma, text])), Buffer.from(']}')]);
}

function initialEvents(path: string, scope: Scope): Buffer {
  return kept(`${path} events`, () => {
    const [before, behind] = [Buffer.from('{"type":"ADDED","object":'), Buffer.from('}\n')];
    const end = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${revision}","annotations":{"k8s.io/initial-events-end":"true"}}}}\n`;
    return Buffer.concat([...within(scope).flatMap((text) => [before, text, behind]), Buffer.from(end)]);
  });
}

function kept(name: string, make: () => Buffer): Buffer {
  const bytes = ready.get(name) ?? make();
  ready.set(name, bytes);
  return bytes;
}

/** Waits while the client is slower; resolves when the client goes. */
function send(bytes: Buffer, response: Response): Promise<void> {
  return new Promise((resolve) => {
    let at = 0;
    const more = (): void => {
      for (let open = true; open && at < bytes.length; at += chunkBytes) open = response.write(bytes.subarray(at, at + chunkBytes));
      if (at < bytes.length) return;
      response.off('drain', more);
      resolve();
    };
    response.on('drain', more);
    response.on('close', resolve);
    more();
  });
}

async function readBody(request: Request): Promise<Buffer> {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(request, 'end');
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function reply(message: BareServerReply): void {
  process.send!(message);
}
