/**
 * Floods from many connections at once must not harm another client's delay, the server's memory or
 * its descriptors. The server ends a flood by a GOAWAY or by closing the connection, unless it
 * costs next to nothing.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bystander, formatDelays, type Delays } from '../support/bystander.js';
import { encodeFields } from '../support/hpack.js';
import { aPath, anApiExport } from '../support/objects.js';
import { descriptors, metricOf, residentMiB, residentMiBDuring } from '../support/process-figures.js';
import { RawHttp1 } from '../support/raw-http1.js';
import { frameTypes, RawHttp2 } from '../support/raw-http2.js';
import type { Certificate } from '../support/test-authority.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';

/**
 * On top of another client's delay without a flood. The goal is a third of it on a quiet machine; a
 * server with the faults took ten times the goal and more.
 */
const othersP99MsMax = 3 * 100;
/**
 * Under a flood the engine lets its heap grow to some 100 MiB before it collects garbage, and no
 * further. Resident memory was 200 MiB after 5 s and after 120 s of resets.
 */
const residentMiBMax = 250;
const floodMs = 5_000;
const quietMs = 2_000;
const everything = aPath({ shard: '*', cluster: '*' });
const json = { 'content-type': 'application/json' };

type Known = Readonly<{ server: StrataProcess; bystander: Bystander; as: Certificate }>;

async function aServer(t: ExecutionContext, flags: readonly string[] = []): Promise<Known> {
  t.timeout(120_000);
  const server = await StrataProcess.start({ flags });
  t.teardown(() => server[Symbol.asyncDispose]());
  const [as, other] = ['amber', 'birch'].map((user) =>
    server.authority.issue({ user, groups: ['strata'], uris: [`strata://shard/${user}`] }),
  );
  await server.client().create(aPath(), anApiExport());
  const bystander = await Bystander.start({ url: server.url, as: other!, path: aPath({ name: 'one' }) });
  t.teardown(() => bystander[Symbol.asyncDispose]());
  return { server, bystander, as: as! };
}

type Harm = Readonly<{ delays: Delays; p99MsMax: number; mostMiB: number }>;

async function harmOf(t: ExecutionContext, { server, bystander }: Known, flood: () => Promise<unknown>): Promise<Harm> {
  await bystander.delays();
  await sleep(quietMs);
  const quiet = await bystander.delays();
  const before = await residentMiB(server.pid);
  const most = await residentMiBDuring(server.pid, flood);
  const delays = await bystander.delays();
  t.log(`another client: ${formatDelays(delays)}; before: ${formatDelays(quiet)}; resident ${before.toFixed()} → ${most.toFixed()} MiB`);
  return { delays, p99MsMax: othersP99MsMax + quiet.p99, mostMiB: most };
}

function assertHarmless(t: ExecutionContext, { delays, p99MsMax, mostMiB }: Harm): void {
  t.is(delays.failed, 0, delays.failures.join('; '));
  t.true(delays.p99 <= p99MsMax, formatDelays(delays));
  t.true(mostMiB <= residentMiBMax, `${mostMiB} MiB`);
}

/** Sends in rounds on all connections, until the time is over or the server has ended all. */
async function rounds(clients: readonly RawHttp2[], send: (client: RawHttp2) => void): Promise<void> {
  const untilMs = performance.now() + floodMs;
  while (performance.now() < untilMs && !clients.every(({ isClosed, goaway }) => isClosed || goaway !== undefined)) {
    for (const client of clients) if (!client.isClosed && client.goaway === undefined && !client.socket.writableNeedDrain) send(client);
    await sleep(1);
  }
}

async function sessions(t: ExecutionContext, count: number, { server }: Known, as: Certificate | null): Promise<readonly RawHttp2[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => RawHttp2.open({ port: server.port, as })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  return clients;
}

for (const who of ['a shard', 'nobody'] as const) {
  test.serial(`12 connections of ${who} that reset their requests get a GOAWAY or are closed, and delay nobody`, async (t) => {
    const known = await aServer(t);
    const paths = [everything, `${everything}?watch=true`, aPath({ name: 'one' }), '/healthz'];
    let [resets, connections, ended] = [0, 0, 0];

    const harm = await harmOf(t, known, async () => {
      const untilMs = performance.now() + floodMs;
      // A client whose connections the server has ended connects again.
      while (performance.now() < untilMs) {
        const clients = await sessions(t, 12, known, who === 'nobody' ? null : known.as);
        await rounds(clients, (client) => {
          for (let i = 0; i < 50; i += 1) client.reset(client.request('GET', paths[(resets += 1) % paths.length] ?? '/').id);
        });
        connections += clients.length;
        ended += clients.filter(({ goaway, isClosed }) => goaway !== undefined || isClosed).length;
        for (const client of clients) client.destroy();
      }
    });

    t.log(`${resets} resets on ${connections} connections`);
    t.true(resets > 5_000, `${resets} resets`);
    t.true(ended > 0, 'the server ends some connections');
    assertHarmless(t, harm);
    await until(async () => (await metricOf(known.server.client(), 'strata_watches_open')) === 0, 35_000);
  });
}

const frameFloods: Readonly<Record<string, (client: RawHttp2) => void>> = {
  SETTINGS: (client) => client.settings([[4, 65_535]]),
  PING: (client) => client.ping(),
  PRIORITY: (client) => client.frame(frameTypes.priority, 0, 3, Buffer.from([0, 0, 0, 0, 16])),
  WINDOW_UPDATE: (client) => client.windowUpdate(0, 1),
  'unknown frames': (client) => client.frame(200, 0, 0, Buffer.alloc(50)),
};

for (const [what, flood] of Object.entries(frameFloods)) {
  test.serial(`a flood of ${what} from 12 anonymous connections delays nobody`, async (t) => {
    const known = await aServer(t);
    const clients = await sessions(t, 12, known, null);

    const harm = await harmOf(t, known, () =>
      rounds(clients, (client) => {
        for (let i = 0; i < 200; i += 1) flood(client);
      }),
    );

    assertHarmless(t, harm);
  });
}

test.serial('a flood of empty DATA from 12 connections delays nobody', async (t) => {
  const known = await aServer(t);
  const clients = await sessions(t, 12, known, known.as);
  const ids = new Map(clients.map((client) => [client, client.request('POST', aPath(), { headers: json, ends: false }).id]));

  const harm = await harmOf(t, known, () =>
    rounds(clients, (client) => {
      for (let i = 0; i < 200; i += 1) client.data(ids.get(client) ?? 1, Buffer.alloc(0));
    }),
  );

  assertHarmless(t, harm);
});

test.serial('CONTINUATION without end, and headers of half a megabyte, end their connections and delay nobody', async (t) => {
  const known = await aServer(t);
  const [endless, long] = await Promise.all([sessions(t, 12, known, null), sessions(t, 12, known, null)]);
  const piece = encodeFields(Array.from({ length: 10 }, (_, i) => [`x-${i}`, 'y'.repeat(200)]));
  for (const client of endless) client.headers(client.begin().id, encodeFields([[':method', 'GET']]), { ends: true, endsHeaders: false });

  const harm = await harmOf(t, known, async () => {
    for (const client of long) client.headers(client.begin().id, encodeFields([['x', 'y'.repeat(500_000)]]), { ends: true });
    await rounds(endless, (client) => {
      for (let i = 0; i < 20; i += 1) client.frame(frameTypes.continuation, 0, 1, piece);
    });
  });

  for (const client of [...endless, ...long])
    t.true(client.isClosed || client.goaway !== undefined || [...client.streams.values()].every(({ isOver }) => isOver), 'it is over');
  assertHarmless(t, harm);
});

test.serial('a thousand silent connections, and slow ones over both protocols, delay nobody and are gone in time', async (t) => {
  const known = await aServer(t, ['--headers-timeout=2s', '--request-timeout=4s', '--write-timeout=4s', '--handshake-timeout=2s']);
  const before = await descriptors(known.server.pid);
  const sockets = Array.from({ length: 1_000 }, () => connect({ host: '127.0.0.1', port: known.server.port }).on('error', () => {}));
  t.teardown(() => sockets.forEach((socket) => socket.destroy()));
  const slow: { send: () => void; isOver: () => boolean; destroy: () => void }[] = [];
  t.teardown(() => slow.forEach(({ destroy }) => destroy()));

  const harm = await harmOf(t, known, async () => {
    for (let i = 0; i < 20; i += 1) {
      const h1 = await RawHttp1.open({ port: known.server.port, as: known.as });
      if (i % 2 === 0) h1.send('GET /healthz HTTP/1.1\r\nx: ');
      else h1.head('POST', aPath(), { ...json, 'content-length': '100000' });
      const h2 = await RawHttp2.open({ port: known.server.port, as: known.as });
      const stream = h2.request('POST', aPath(), { headers: json, ends: false });
      slow.push(
        { send: () => h1.send(' '), isOver: () => h1.isClosed || h1.answers.length > 0, destroy: () => h1.destroy() },
        { send: () => h2.data(stream.id, Buffer.from(' ')), isOver: () => stream.isOver || h2.isClosed, destroy: () => h2.destroy() },
      );
    }
    const untilMs = performance.now() + 15_000;
    while (performance.now() < untilMs && !slow.every(({ isOver }) => isOver())) {
      for (const one of slow) if (!one.isOver()) one.send();
      await sleep(500);
    }
  });

  t.true(
    slow.every(({ isOver }) => isOver()),
    `${slow.filter(({ isOver }) => !isOver()).length} slow ones are left`,
  );
  for (const { destroy } of slow) destroy();
  await until(async () => (await descriptors(known.server.pid)) <= before, 15_000);
  assertHarmless(t, harm);
});

test.serial('400 watches that exclude 60 kB of values are refused, or cost little and hold up no write', async (t) => {
  const known = await aServer(t);
  const values = Array.from({ length: 10_000 }, (_, i) => `v${i}`)
    .join(',')
    .slice(0, 59_000)
    .replace(/,[^,]*$/, '');
  const target = `${everything}?watch=true&labelSelector=${encodeURIComponent(`a notin (${values})`).replaceAll('%2C', ',')}`;
  const before = await residentMiB(known.server.pid);
  const client = known.server.client({ http2: true });

  const clients = await sessions(t, 4, known, known.as);
  const streams = clients.flatMap((one) => Array.from({ length: 100 }, () => one.request('GET', target)));
  await until(() => streams.every(({ status, isOver }) => status !== 0 || isOver) || clients.some(({ isClosed }) => isClosed), 30_000);
  const open = streams.filter(({ status }) => status === 200).length;
  const writeMs: number[] = [];
  for (let i = 0; i < 50; i += 1) {
    const startedMs = performance.now();
    await client.create(aPath(), anApiExport({ name: `n${i}`, labels: { a: `w${i}` } }));
    writeMs.push(performance.now() - startedMs);
  }

  writeMs.sort((a, b) => a - b);
  const [median, grown] = [writeMs[25] ?? Infinity, (await residentMiB(known.server.pid)) - before];
  t.log(`${open} of ${streams.length} watches open; a write took ${median.toFixed(1)} ms (median); grown by ${grown.toFixed()} MiB`);
  t.true(grown <= 150, `${grown} MiB`);
  t.true(median <= 15, `${median} ms`);
});
