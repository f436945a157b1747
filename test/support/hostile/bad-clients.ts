/**
 * Bad clients: each is a function that runs until its signal fires and then leaves nothing open.
 * They write nothing that a server would store, so they can run against a server that others use.
 *
 * Each draws from the given `Random`, so a seed reproduces a run as far as timing allows. The
 * number of connections and the pauses bound each client. A server may cut, refuse and close them;
 * they start again.
 */
import { setMaxListeners } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../crash/random.js';
import { aPath } from '../objects.js';
import { encodeFields } from '../hpack.js';
import { RawHttp1 } from '../raw-http1.js';
import { errorCodes, frameTypes, RawHttp2 } from '../raw-http2.js';
import { endings, openTls, type As } from '../raw-tls.js';

export type Target = Readonly<{ host?: string; port: number; as: As }>;

export type BadClient = (target: Target, random: Random, signal: AbortSignal) => Promise<void>;

/** A pause that loses a race keeps its listener until the pause ends. */
const listenersMax = 200;
const json = { 'content-type': 'application/json' };
const everything = aPath({ shard: '*', cluster: '*' });

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

/** Repeats `once` until the signal fires; pauses after a failed connection. */
async function again(signal: AbortSignal, once: () => Promise<void>): Promise<void> {
  setMaxListeners(listenersMax, signal);
  while (!signal.aborted) await once().catch(() => pause(100, signal));
}

async function withHttp2(
  target: Target,
  options: Readonly<{ windowBytes?: number; silent?: boolean }>,
  use: (client: RawHttp2) => Promise<void>,
) {
  const client = await RawHttp2.open({ ...target, ...options });
  try {
    await use(client);
  } finally {
    client.destroy();
  }
}

async function withHttp1(target: Target, use: (client: RawHttp1) => Promise<void>): Promise<void> {
  const client = await RawHttp1.open(target);
  try {
    await use(client);
  } finally {
    client.destroy();
  }
}

/** Requests much over HTTP/2 and grants no window for the answers. */
const zeroWindow: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, { windowBytes: 0 }, async (client) => {
      const path = target.as === null ? `/livez?verbose&exclude=${'x'.repeat(1_000 + random.below(60_000))}` : everything;
      for (let i = 0; i < 100; i += 1) client.request('GET', path);
      await pause(500 + random.below(5_000), signal);
    }),
  );

/** Requests much over HTTP/2 and reads none of it. */
const neverReads: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, { windowBytes: 2 ** 31 - 1 }, async (client) => {
      client.stopReading();
      for (let i = 0; i < 50; i += 1) client.request('GET', i % 2 === 0 ? everything : `${everything}?watch=true`);
      await pause(500 + random.below(5_000), signal);
    }),
  );

/** Requests much over HTTP/1.1, one request after another, and reads none of it. */
const neverReadsHttp1: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp1(target, async (client) => {
      client.stopReading();
      for (let i = 0; i < 100; i += 1) client.head('GET', everything);
      await pause(500 + random.below(5_000), signal);
    }),
  );

/** Opens streams and resets them at once, until the server ends the connection. */
const rapidResets: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const paths = [everything, `${everything}?watch=true`, '/healthz', aPath({ name: 'none' })];
      while (!signal.aborted && !client.isClosed && client.goaway === undefined) {
        for (let i = 0; i < 50; i += 1) client.reset(client.request('GET', paths[random.below(paths.length)] ?? '/').id);
        await pause(5, signal);
      }
      await pause(50, signal);
    }),
  );

/** Sends thousands of frames, some of which the server must answer. */
const frameFlood: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const stream = client.request('POST', aPath(), { headers: json, ends: false });
      const floods: readonly (() => void)[] = [
        () => client.settings([[4, random.below(100_000)]]),
        () => client.ping(),
        () => client.frame(frameTypes.priority, 0, 1 + 2 * random.below(1_000), Buffer.from([0, 0, 0, 0, 16])),
        () => client.data(stream.id, Buffer.alloc(0)),
        () => client.windowUpdate(0, 1),
        () => client.frame(200 + random.below(50), 0, 0, Buffer.alloc(random.below(100))),
      ];
      const flood = floods[random.below(floods.length)];
      const untilMs = performance.now() + 2_000;
      while (!signal.aborted && !client.isClosed && performance.now() < untilMs) {
        for (let i = 0; i < 100; i += 1) flood?.();
        await pause(5, signal);
      }
    }),
  );

/**
 * Sends headers without an end: one that is too long, CONTINUATION after CONTINUATION, or one line
 * at a time.
 */
const headerFlood: BadClient = (target, random, signal) =>
  again(signal, async () => {
    const kind = random.below(3);
    if (kind === 0)
      return withHttp1(target, async (client) => {
        client.send('GET /healthz HTTP/1.1\r\nhost: x\r\n');
        for (let i = 0; i < 2_000 && !client.isClosed && !signal.aborted; i += 1) {
          client.send(`x-${i}: ${'y'.repeat(random.below(200))}\r\n`);
          if (i % 50 === 0) await pause(1, signal);
        }
      });
    return withHttp2(target, {}, async (client) => {
      const { id } = client.begin();
      const block = encodeFields([
        [':method', 'GET'],
        [':path', '/healthz'],
      ]);
      if (kind === 1) return client.headers(id, encodeFields([['x', 'y'.repeat(500_000)]]), { ends: true });
      client.headers(id, block, { ends: true, endsHeaders: false });
      for (let i = 0; i < 1_000 && !client.isClosed && !signal.aborted; i += 1) {
        client.frame(frameTypes.continuation, 0, id, encodeFields([[`x-${i}`, 'y'.repeat(random.below(2_000))]]));
        if (i % 20 === 0) await pause(1, signal);
      }
    });
  });

/** Sends one byte at a time, in headers and in bodies, over both protocols. */
const trickles: BadClient = (target, random, signal) =>
  again(signal, async () => {
    const h1 = await RawHttp1.open(target);
    const h2 = await RawHttp2.open(target).catch((error: unknown) => {
      h1.destroy();
      throw error;
    });
    const inHeaders = random.chance(0.5);
    if (inHeaders) h1.send('GET /healthz HTTP/1.1\r\nx: ');
    else h1.head('POST', aPath(), { ...json, 'content-length': '1000000' });
    const stream = h2.request('POST', aPath(), { headers: json, ends: false });
    for (let i = 0; i < 30 && !signal.aborted && !(h1.isClosed && (h2.isClosed || stream.isOver)); i += 1) {
      h1.send(' ');
      if (!stream.isOver) h2.data(stream.id, Buffer.from(' '));
      await pause(200, signal);
    }
    h1.destroy();
    h2.destroy();
  });

/** Opens connections and sends nothing: before TLS, after it, after a preface. */
const idleConnections: BadClient = (target, random, signal) =>
  again(signal, async () => {
    const sockets = Array.from({ length: 20 + random.below(40) }, () => {
      const socket = connectTcp({ host: target.host ?? '127.0.0.1', port: target.port });
      socket.on('error', () => {});
      return socket;
    });
    const secured = await Promise.allSettled(Array.from({ length: 10 }, () => openTls(target, { ALPNProtocols: ['h2'] })));
    await pause(1_000 + random.below(4_000), signal);
    for (const socket of sockets) socket.destroy();
    for (const one of secured) if (one.status === 'fulfilled') one.value.tls.destroy();
  });

/** Ends connections without notice, at any moment, in each of the ways. */
const abruptEnds: BadClient = (target, random, signal) =>
  again(signal, async () => {
    const ending = endings[random.below(endings.length)] ?? 'reset';
    const moment = random.below(5);
    if (moment === 0) {
      const socket = connectTcp({ host: target.host ?? '127.0.0.1', port: target.port });
      socket.on('error', () => {});
      await pause(2, signal);
      return void socket.destroy();
    }
    if (random.chance(0.5)) {
      const client = await RawHttp2.open(target);
      for (let i = 0; i < 20; i += 1) beginHttp2(client, moment);
      await pause(random.below(20), signal);
      return client.end(ending);
    }
    const client = await RawHttp1.open(target);
    beginHttp1(client, moment);
    await pause(random.below(20), signal);
    client.end(ending);
  });

/** Leaves a request unfinished: 1 in its headers, 2 in its body, 3 in its answer, 4 in a watch. */
export function beginHttp2(client: RawHttp2, moment: number): void {
  const half = encodeFields([[':method', 'GET']]);
  if (moment === 1) client.headers(client.begin().id, half, { ends: true, endsHeaders: false });
  else if (moment === 2) client.data(client.request('POST', aPath(), { headers: json, ends: false }).id, Buffer.from('{"kind":'));
  else client.request('GET', moment === 3 ? everything : `${everything}?watch=true`);
}

export function beginHttp1(client: RawHttp1, moment: number): void {
  if (moment === 1) client.send('GET /healthz HTTP/1.1\r\nho');
  else if (moment === 2) {
    client.head('POST', aPath(), { ...json, 'content-length': '1000' });
    client.send('{"kind":');
  } else client.head('GET', moment === 3 ? everything : `${everything}?watch=true`);
}

/** Sends bytes that are not TLS, not HTTP, or almost HTTP. */
const malformed: BadClient = (target, random, signal) =>
  again(signal, async () => {
    const junk = Buffer.from(Array.from({ length: 1 + random.below(2_000) }, () => random.below(256)));
    const texts = [
      'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef',
      'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n',
    ];
    switch (random.below(4)) {
      case 0: {
        const socket = connectTcp({ host: target.host ?? '127.0.0.1', port: target.port });
        socket.on('error', () => {});
        socket.write(junk);
        await pause(20, signal);
        return void socket.destroy();
      }
      case 1:
        return await withHttp1(target, async (client) => {
          client.send(junk);
          await pause(20, signal);
        });
      case 2:
        return await withHttp1(target, async (client) => {
          client.send(texts[random.below(texts.length)] ?? '');
          await pause(20, signal);
        });
      default:
        return await withHttp2(target, {}, async (client) => {
          client.frame(random.below(12), random.below(256), random.below(10), junk.subarray(0, random.below(junk.length)));
          await pause(20, signal);
        });
    }
  });

/** Sends URLs, selectors, tokens and bodies that are expensive to refuse. */
const costlyRequests: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const notIn = encodeURIComponent(`a notin (${Array.from({ length: 5_000 }, (_, i) => `v${i}`).join(',')})`);
      const token = Buffer.from(JSON.stringify({ v: 1, rv: random.below(1e9), start: 'x'.repeat(random.below(5_000)) })).toString(
        'base64url',
      );
      const targets = [
        `${everything}?watch=true&labelSelector=${notIn}`,
        `${everything}?labelSelector=${notIn}`,
        `${everything}?limit=1&continue=${token}`,
        `${everything}?limit=1&continue=${'A'.repeat(random.below(8_000))}`,
        `/services/cache/shards/amber/clusters/${'../'.repeat(random.below(200))}etc/passwd`,
        `/services/cache/shards/amber%2f..%2f/clusters/${'%2e%2e/'.repeat(20)}`,
        `${everything}?labelSelector=${'!'.repeat(random.below(8_000))}`,
      ];
      for (let i = 0; i < 5 && !client.isClosed; i += 1) {
        await Promise.race([client.ask('GET', targets[random.below(targets.length)] ?? '/'), pause(200, signal)]);
      }
    }),
  );

/** Sends bodies of the greatest length that the server refuses only once it has read them. */
const costlyBodies: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const deep = `{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"deep"},"spec":${'['.repeat(500_000)}`;
      const aliases = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'.replaceAll(/./g, (name) => `${name}: &${name} [${'*a,'.repeat(9)}]\n`)}`;
      const bodies: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
        ['POST', deep, json],
        ['POST', `${'{"a":'.repeat(300_000)}`, json],
        ['POST', aliases, { 'content-type': 'application/yaml' }],
        ['POST', ' '.repeat(4_000_000), json],
        ['PATCH', '[{"op":"copy","from":"","path":"/a"}]', { 'content-type': 'application/json-patch+json' }],
        [
          'PATCH',
          `{"metadata":{"labels":{"__proto__":"x"}},"a":${'['.repeat(100_000)}`,
          { 'content-type': 'application/merge-patch+json' },
        ],
      ];
      const [method, text, headers] = bodies[random.below(bodies.length)] ?? ['POST', '', json];
      const path = method === 'PATCH' ? aPath({ shard: 'no-such-shard', name: 'none' }) : aPath({ shard: 'no-such-shard' });
      const stream = client.request(method, path, { headers, ends: false });
      await Promise.race([client.body(stream, Buffer.from(text), { stopsWhenOver: false }), pause(5_000, signal)]);
      await pause(20, signal);
    }),
  );

const keepsSending: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const stream = client.request('POST', aPath({ shard: '*' }), { headers: json, ends: false });
      const untilMs = performance.now() + 3_000;
      while (!signal.aborted && !client.isClosed && stream.resetCode === undefined && performance.now() < untilMs) {
        await Promise.race([client.body(stream, Buffer.alloc(16_384), { ends: false, stopsWhenOver: false }), pause(100, signal)]);
        await pause(random.below(10), signal);
      }
    }),
  );

/** Upgrades to a websocket, then sends bytes that are no frame. */
const badWebsockets: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp1(target, async (client) => {
      client.head('GET', '/services/cache/connect', {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits',
      });
      await pause(20, signal);
      client.send(Buffer.from(Array.from({ length: 1 + random.below(500) }, () => random.below(256))));
      await pause(20 + random.below(200), signal);
    }),
  );

/**
 * Breaks rules that end a connection: resets with error codes, requests on server streams, windows
 * that overflow.
 */
const brokenRules: BadClient = (target, random, signal) =>
  again(signal, () =>
    withHttp2(target, {}, async (client) => {
      const { id } = client.request('GET', `${everything}?watch=true`);
      const wrongs: readonly (() => void)[] = [
        () => client.windowUpdate(id, 2 ** 31 - 1),
        () => client.windowUpdate(0, 0),
        () => client.data(id, Buffer.from('x')),
        () => client.headers(id + 1, encodeFields([[':method', 'GET']]), { ends: true }),
        () => client.headers(id + 2, encodeFields([[':path', '']]), { ends: true }),
        () => client.frame(frameTypes.settings, 0, 0, Buffer.alloc(5)),
        () => client.frame(frameTypes.goaway, 0, 0, Buffer.alloc(8)),
        () => client.reset(id, errorCodes.flowControl),
        () => client.reset(id + 100),
      ];
      wrongs[random.below(wrongs.length)]?.();
      await pause(20, signal);
    }),
  );

export const badClients = {
  zeroWindow,
  neverReads,
  neverReadsHttp1,
  rapidResets,
  frameFlood,
  headerFlood,
  trickles,
  idleConnections,
  abruptEnds,
  malformed,
  costlyRequests,
  costlyBodies,
  keepsSending,
  badWebsockets,
  brokenRules,
} as const satisfies Readonly<Record<string, BadClient>>;
