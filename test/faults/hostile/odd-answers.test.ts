/**
 * Answers that no server should give, byte by byte over HTTP/1.1 and frame by frame over HTTP/2.
 * Each must end its request, and a truncated answer must never look complete.
 */
import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Answer } from '../../support/kube-client.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { aRawBackend, aRawHttp2Backend, moveBirch, type RawStream } from '../../support/proxy/raw-backend.js';
import { connected } from '../../support/proxy/raw-requests.js';

const path = '/clusters/team1/x';
const teapot = 'HTTP/1.1 418 No Coffee\r\nContent-Length: 0\r\n\r\n';
const ok = 'HTTP/1.1 200 OK\r\n';
const hint = 'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n';
const switching = 'HTTP/1.1 101 Switching Protocols\r\n';

type Ending = 'stays' | 'ends' | 'resets';
type Case = Readonly<{ what: string; bytes: string; ending?: Ending; wanted: RegExp }>;

/**
 * `wanted`: the status, and the body if it is whole; `cut` if the client must see that the answer
 * is truncated.
 */
const answers: readonly Case[] = [
  { what: 'a 101 to a websocket', bytes: `${switching}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes`, wanted: /^502 / },
  { what: 'a 101 to something else', bytes: `${switching}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`, ending: 'stays', wanted: /^502 / },
  { what: 'a 101 that names no protocol', bytes: `${switching}\r\n`, wanted: /^502 / },
  {
    what: 'a 200 that upgrades',
    bytes: `${ok}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok`,
    wanted: /^200 ok$/,
  },
  {
    what: 'a 100, a 102 and a 103 before it',
    bytes: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${ok}Content-Length: 2\r\n\r\nok`,
    wanted: /^200 ok$/,
  },
  { what: 'fifty of a 103 before it', bytes: `${hint.repeat(50)}${ok}Content-Length: 2\r\n\r\nok`, wanted: /^200 ok$/ },
  { what: 'a 103 again and again', bytes: hint.repeat(1_000), wanted: /^502 / },
  { what: 'a 100 again and again', bytes: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000), wanted: /^502 / },
  { what: 'a 100 and nothing after it', bytes: 'HTTP/1.1 100 Continue\r\n\r\n', ending: 'ends', wanted: /^502 / },
  { what: 'two answers', bytes: `${ok}Content-Length: 2\r\n\r\nok${ok}Content-Length: 3\r\n\r\nbad`, wanted: /^200 ok$/ },
  { what: 'fewer bytes than it announces', bytes: `${ok}Content-Length: 9\r\n\r\nfour`, ending: 'ends', wanted: /^cut$/ },
  { what: 'fewer bytes than it announces, and a reset', bytes: `${ok}Content-Length: 9\r\n\r\nfour`, ending: 'resets', wanted: /^cut$/ },
  { what: 'more bytes than it announces', bytes: `${ok}Content-Length: 4\r\n\r\nfourmore`, wanted: /^200 four$/ },
  {
    what: 'a length and chunks',
    bytes: `${ok}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n`,
    wanted: /^502 |^cut$/,
  },
  { what: 'two lengths', bytes: `${ok}Content-Length: 4\r\nContent-Length: 5\r\n\r\nfour`, wanted: /^502 |^cut$/ },
  { what: 'a length that is none', bytes: `${ok}Content-Length: four\r\n\r\nfour`, wanted: /^502 / },
  { what: 'a length below nothing', bytes: `${ok}Content-Length: -4\r\n\r\nfour`, wanted: /^502 / },
  { what: 'chunks that are cut off', bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n`, ending: 'ends', wanted: /^cut$/ },
  { what: 'a chunk that is cut off', bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nfour`, ending: 'resets', wanted: /^cut$/ },
  {
    what: 'chunks without their last line',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n`,
    ending: 'ends',
    wanted: /^cut$/,
  },
  {
    what: 'a chunk of an impossible length',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nfour`,
    wanted: /^502 |^cut$/,
  },
  {
    what: 'trailers',
    bytes: `${ok}Transfer-Encoding: chunked\r\nTrailer: X-After\r\n\r\n4\r\nfour\r\n0\r\nX-After: a\r\n\r\n`,
    wanted: /^200 four$/,
  },
  { what: 'a body that ends with its connection', bytes: `${ok}Connection: close\r\n\r\nfour`, ending: 'ends', wanted: /^200 four$/ },
  { what: 'a 204 with a body', bytes: 'HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nfour', wanted: /^204 $/ },
  { what: 'a 205 with a body', bytes: 'HTTP/1.1 205 Reset Content\r\nContent-Length: 4\r\n\r\nfour', wanted: /^205 $/ },
  {
    what: 'chunks of what is compressed',
    bytes: `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n`,
    wanted: /^502 /,
  },
  { what: 'a 304 with a body', bytes: 'HTTP/1.1 304 Not Modified\r\n\r\nfour', wanted: /^304 $/ },
  { what: 'a status of two digits', bytes: 'HTTP/1.1 20 OK\r\n\r\n', wanted: /^502 / },
  { what: 'a status of four digits', bytes: 'HTTP/1.1 2000 OK\r\n\r\n', wanted: /^502 / },
  { what: 'the status 000', bytes: 'HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n', wanted: /^502 / },
  { what: 'the status 999', bytes: 'HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n', wanted: /^502 / },
  { what: 'a status line that is none', bytes: 'SSH-2.0-OpenSSH_9.6\r\n', wanted: /^502 / },
  { what: 'HTTP/2 to a request of HTTP/1.1', bytes: '\0\0\0\x04\0\0\0\0\0', wanted: /^502 / },
  { what: 'half a status line', bytes: 'HTTP/1.1 20', ending: 'ends', wanted: /^502 / },
  { what: 'half its headers', bytes: `${ok}Content-Le`, ending: 'resets', wanted: /^502 / },
  { what: 'nothing', bytes: '', ending: 'ends', wanted: /^502 / },
  { what: 'headers of a megabyte', bytes: `${ok}X-Long: ${'a'.repeat(1024 * 1024)}\r\n\r\n`, wanted: /^502 / },
  { what: 'a header that no header can be', bytes: `${ok}X Odd: a\r\nContent-Length: 0\r\n\r\n`, wanted: /^502 / },
];

/**
 * A front door, and behind it an HTTP/1.1 backend that gives the answer of the case `given.now`.
 */
async function behind(t: ExecutionContext): Promise<Readonly<{ door: TestServer; given: { now: Case } }>> {
  const installation = await anInstallation(t);
  const given = { now: answers[0]! };
  const { port } = await aRawBackend(t, installation.door.authority, (socket, request, reset) => {
    if (!request.includes(path)) return void socket.write(teapot);
    socket.write(Buffer.from(given.now.bytes, 'latin1'), () => end(socket, reset, given.now.ending));
  });
  await moveBirch(installation, port);
  return { door: installation.door, given };
}

function end(socket: TLSSocket, reset: () => void, how: Ending = 'stays'): void {
  if (how === 'ends') socket.end();
  if (how === 'resets') setTimeout(reset, 50);
}

async function outcome(answer: Promise<Answer>): Promise<string> {
  return answer.then(
    ({ status, text }) => `${status} ${text}`,
    (error: Error) => (error.name === 'TimeoutError' || error.name === 'AbortError' ? 'nothing in time' : 'cut'),
  );
}

for (const http2 of [false, true])
  for (const lasts of [false, true])
    test.serial(
      `over HTTP/${http2 ? 2 : 1.1}, any answer of a backend to a ${lasts ? 'watch' : 'request'} ends it, whole only if complete`,
      async (t) => {
        t.timeout(120_000);
        const { door, given } = await behind(t);
        for (const one of answers) {
          given.now = one;
          const answered = await outcome(door.client({ http2 }).raw('GET', `${path}${lasts ? '?watch=1' : ''}`, { timeoutMs: 8_000 }));
          t.regex(answered, one.wanted, one.what);
        }
        await until(async () => (await door.metric('strata_requests_in_flight')) === 0);
      },
    );

test.serial('any answer of a backend to an upgrade ends it, whole only if complete', async (t) => {
  t.timeout(120_000);
  const { door, given } = await behind(t);
  for (const one of answers) {
    if (one.what === 'a 101 to a websocket') continue;
    given.now = one;
    const socket = connected(door);
    let [text, isClosed] = ['', false];
    socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
    socket.once('close', () => (isClosed = true));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await until(() => isClosed, 8_000).catch(() => t.fail(`${one.what}: nothing in time`));
    const [head = '', body = ''] = text.split('\r\n\r\n', 2);
    const length = /^content-length: (\d+)$/im.exec(head)?.[1];
    const isWhole = length === undefined ? /^HTTP\/1\.1 (?:[23]04|205)/.test(head) : body.length === Number(length);
    const shown = isWhole ? `${head.split(' ')[1]} ${body}` : 'cut';
    // The front door passes on nothing before the answer is complete, so a truncated answer becomes
    // 502.
    t.regex(shown.replace(/^502 [^]*/, '502 cut'), one.wanted.source.includes('cut') ? /^502 / : one.wanted, one.what);
  }
});

const [noError, internalError, refusedStream, cancel] = [0, 2, 7, 8];

/** `wanted`: the status if the answer is whole, for a backend that frames its answer with `act`. */
const framed: readonly (readonly [what: string, act: (stream: RawStream) => void, wanted: string])[] = [
  ['a reset in the middle', (stream) => half(stream, () => stream.reset(internalError)), 'cut'],
  ['a reset in the middle of what has a length', (stream) => half(stream, () => stream.reset(cancel), 9), 'cut'],
  ['a reset without a code in the middle of what has a length', (stream) => half(stream, () => stream.reset(noError), 9), 'cut'],
  ['an end before its length', (stream) => half(stream, () => stream.data('', true), 9), 'cut'],
  ['an end behind its length', (stream) => half(stream, () => stream.data('more than that', true), 6), 'cut'],
  ['the end of its connection in the middle', (stream) => half(stream, () => stream.socket.end()), 'cut'],
  ['a GOAWAY that leaves it out, in the middle', (stream) => half(stream, () => stream.goAway(0, internalError)), 'cut'],
  ['headers after headers', (stream) => half(stream, () => stream.headers(200)), 'cut'],
  ['a status that is none', (stream) => stream.headers(99, undefined, true), '502'],
  ['a 101, which HTTP/2 does not have', (stream) => stream.headers(101, undefined, true), '502'],
  ['a 103 again and again', (stream) => hints(stream, 1_000), '502'],
  [
    'fifty of a 103 before it',
    (stream) => {
      hints(stream, 50);
      half(stream, () => stream.data('half', true));
    },
    '200',
  ],
  ['origins of its own without end', (stream) => origins(stream, 1_000), '502'],
  [
    'fifty origins of its own before it',
    (stream) => {
      origins(stream, 50);
      half(stream, () => stream.data('half', true));
    },
    '200',
  ],
  ['a reset before it answers', (stream) => stream.reset(internalError), '502'],
  ['the end of its connection before it answers', (stream) => stream.socket.end(), '502'],
  ['a refusal of the stream', (stream) => stream.reset(refusedStream), '503'],
  [
    'a GOAWAY that includes it, and the whole answer',
    (stream) => {
      stream.goAway(stream.id, noError);
      half(stream, () => stream.data('half', true));
    },
    '200',
  ],
  [
    'an answer before its request has ended',
    (stream) => {
      stream.headers(200, 4);
      stream.data('half', true);
      stream.reset(noError);
    },
    '200',
  ],
];

function hints(stream: RawStream, count: number): void {
  for (let i = 0; i < count; i += 1) stream.headers(103);
}

/** Sends ORIGIN frames (RFC 8336), each with another origin. */
function origins(stream: RawStream, count: number): void {
  for (let i = 0; i < count; i += 1) {
    const origin = Buffer.from(`https://${i}.example`);
    const head = Buffer.from([0, 0, 2 + origin.length, 0x0c, 0, 0, 0, 0, 0, 0, origin.length]);
    stream.socket.write(Buffer.concat([head, origin]));
  }
}

function half(stream: RawStream, then: () => void, length?: number): void {
  stream.headers(200, length);
  stream.data('half');
  setTimeout(then, 100);
}

test.serial('however a backend frames an HTTP/2 answer, it is whole only if complete, and what is refused was not sent', async (t) => {
  t.timeout(120_000);
  const installation = await anInstallation(t);
  const { door } = installation;
  let act = (stream: RawStream): void => stream.headers(418, undefined, true);
  await moveBirch(installation, await aRawHttp2Backend(t, door.authority, (stream) => act(stream)));
  for (const [what, one, wanted] of framed)
    for (const http2 of [false, true])
      for (const query of ['', '?watch=1']) {
        act = one;
        const answered = await outcome(door.client({ http2 }).raw('GET', `${path}${query}`, { timeoutMs: 8_000 }));
        t.regex(answered, new RegExp(`^${wanted}\\b`), `${what}, over HTTP/${http2 ? 2 : 1.1}${query}`);
      }
});

/** All that a header value may contain, one character per byte. */
const headerValues = [Buffer.from('299 - "日本 😀 é"').toString('latin1'), '\u00e9\u0080\u009f\u00ff', 'a\tb', 'x'.repeat(4_096)];

test.serial('headers of an answer are passed on byte for byte, over HTTP/1.1, over HTTP/2 and to a websocket', async (t) => {
  const { door, given } = await behind(t);
  for (const value of headerValues) {
    const bytes = `Content-Length: 2\r\nWarning: ${value}\r\nX-Odd: ${value}\r\n\r\nok`;
    given.now = { what: 'headers', bytes: `${ok}${bytes}`, wanted: /^/ };
    for (const http2 of [false, true]) {
      const answer = await door.client({ http2 }).raw('GET', path, { timeoutMs: 8_000 });
      t.deepEqual([answer.text, answer.headers['warning'], answer.headers['x-odd']], ['ok', value, value]);
    }

    for (const answer of [`${ok}${bytes}`, `${switching}Connection: Upgrade\r\nUpgrade: websocket\r\nX-Odd: ${value}\r\n\r\nok`]) {
      given.now = { what: 'headers', bytes: answer, wanted: /^/ };
      const socket = connected(door);
      let text = '';
      socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
      socket.write(`GET ${path} HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      await until(() => text.endsWith('ok'), 8_000).catch(() => t.fail('nothing in time'));
      t.true(text.includes(`x-odd: ${value}\r\n`), text);
      socket.destroy();
    }
  }
});
