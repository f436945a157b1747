/**
 * The ceiling of a push: what one thread of Node can make durable if it does nothing else. It uses
 * a websocket over TLS, msgpack, and one table that holds each body once. It checks nothing,
 * indexes only the key, and shows the objects to nobody.
 *
 *   frame = [sequence, key, body, key, body, …]     ack = [sequence], after the commit
 *
 * A commit has the frames of one turn of the event loop, at most `framesPerCommitMax`, with
 * `synchronous=FULL`. Other settings of SQLite are the defaults or, with `tuned`, those of the
 * measured server. Bound: the client's window of unacknowledged frames.
 */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Database, type Connection } from '../../src/store/sqlite/driver.js';
import { pack, unpack } from 'msgpackr';
import { WebSocketServer, type WebSocket } from 'ws';
import type { BareServerAsked, BareServerReply } from './bare-process.js';

const pageBytes = 8192;
const pageCacheKib = 8192;
const walPagesBeforeCheckpoint = 2000;

type Frame = readonly [sequence: number, ...keysAndBodies: (string | Uint8Array)[]];
type Received = Readonly<{ frame: Frame; from: WebSocket }>;

let commit: (frames: readonly Received[]) => void = () => {
  throw new Error('nobody said where to store');
};
let framesPerCommitMax = 1;
let received: Received[] = [];
let database: Connection | undefined;

process.on('message', (asked: BareServerAsked) => {
  switch (asked.kind) {
    case 'listen':
      listen(asked.certificatePem, asked.keyPem);
      return;
    case 'store':
      commit = openStore(asked);
      ({ framesPerCommitMax } = asked);
      reply({ kind: 'serving' });
      return;
  }
});
process.on('disconnect', () => process.exit(0));

function listen(cert: string, key: string): void {
  const server = createServer({ cert, key });
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  sockets.on('connection', (socket) =>
    socket.on('message', (message: Buffer) => receive({ frame: unpack(message) as Frame, from: socket })),
  );
  server.listen(0, '127.0.0.1', () => reply({ kind: 'listening', port: (server.address() as AddressInfo).port }));
}

function receive(one: Received): void {
  received.push(one);
  if (received.length >= framesPerCommitMax) commitReceived();
  else if (received.length === 1) setImmediate(commitReceived);
}

function commitReceived(): void {
  const frames = received;
  if (frames.length === 0) return;
  received = [];
  commit(frames);
  for (const { frame, from } of frames) from.send(pack([frame[0]]));
}

function openStore({ file, tuned }: Readonly<{ file: string; tuned: boolean }>): typeof commit {
  database?.close();
  database = new Database(file);
  if (tuned) database.pragma(`page_size = ${pageBytes}`);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  if (tuned) {
    database.pragma(`wal_autocheckpoint = ${walPagesBeforeCheckpoint}`);
    database.pragma(`cache_size = -${pageCacheKib}`);
  }
  database.exec('CREATE TABLE bodies (key TEXT PRIMARY KEY, body BLOB NOT NULL)');
  const insert = database.prepare('INSERT INTO bodies (key, body) VALUES (?, ?)');
  return database.transaction((frames: readonly Received[]) => {
    for (const { frame } of frames) for (let at = 1; at < frame.length; at += 2) insert.run(frame[at], frame[at + 1]);
  });
}

function reply(message: BareServerReply): void {
  process.send!(message);
}
