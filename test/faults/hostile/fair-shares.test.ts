/**
 * One caller takes all it can get, over both protocols. Finds another caller that is not served,
 * and callers without a certificate that keep out one that has a certificate.
 *
 * On commit e892933 no limit was per caller: all callers got 429, and silent connections kept the
 * administrator out.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { connect } from 'node:net';
import type { KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { openTls } from '../../support/raw-tls.js';
import type { Certificate } from '../../support/test-authority.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const json = { 'content-type': 'application/json' };
const everything = aPath({ shard: '*', cluster: '*' });
const one = aPath({ name: 'one' });

type Cast = Readonly<{ server: TestServer; amber: Certificate; birch: Certificate; cedar: Certificate; cache: Certificate }>;

async function aCast(t: ExecutionContext, flags: Readonly<Record<string, string>>): Promise<Cast> {
  const server = await aServer(t, { flags });
  const issue = (kind: 'shard' | 'cache', name: string): Certificate =>
    server.authority.issue({ user: name, groups: ['strata'], uris: [`strata://${kind}/${name}`] });
  const [amber, birch, cedar, cache] = [
    issue('shard', 'amber'),
    issue('shard', 'birch'),
    issue('shard', 'cedar'),
    issue('cache', 'region-1'),
  ];
  await server.client().create(aPath(), anApiExport());
  return { server, amber, birch, cedar, cache };
}

/** Begins `count` writes over HTTP/2 whose bodies do not come; resolves with their streams. */
async function slowBodies(t: ExecutionContext, port: number, as: Certificate, count: number) {
  const client = await RawHttp2.open({ port, as });
  t.teardown(() => client.destroy());
  const streams = Array.from({ length: count }, () => {
    const stream = client.request('POST', aPath(), { headers: json, ends: false });
    client.data(stream.id, Buffer.from('{'));
    return stream;
  });
  // The server handles requests in order, so all writes have begun when this one is answered.
  await client.ask('GET', '/livez');
  return { client, streams };
}

async function assertServed(t: ExecutionContext, server: TestServer, all: readonly (readonly [string, Certificate])[]): Promise<void> {
  for (const [who, as] of all)
    for (const http2 of [false, true])
      t.is((await server.client({ as, http2 }).raw('GET', one)).status, 200, `${who} over HTTP/${http2 ? 2 : '1.1'}`);
  for (const http2 of [false, true])
    t.is((await server.client({ as: null, http2 }).raw('GET', '/livez')).status, 200, 'health, for an anonymous caller');
}

function assertTooMany(
  t: ExecutionContext,
  { status, headers, text }: Readonly<{ status: number; headers: Readonly<Record<string, string>>; text: string }>,
): void {
  t.is(status, 429);
  t.regex(headers['retry-after'] ?? '', /^\d+$/);
  t.like(JSON.parse(text) as KubeStatus, { kind: 'Status', reason: 'TooManyRequests', code: 429 });
}

test('when the bodies of one shard do not come, that shard gets 429 and all others are served, over both protocols', async (t) => {
  const { server, amber, birch, cache } = await aCast(t, { 'requests-in-flight-max': '20' });

  const { client, streams } = await slowBodies(t, server.port, amber, 20);
  await assertServed(t, server, [
    ['another shard', birch],
    ['a cache', cache],
    ['a master', server.master],
  ]);

  const refused = streams.filter(({ status }) => status !== 0);
  t.true(refused.length >= 1 && refused.length < 20, `${refused.length} refused`);
  for (const stream of refused) {
    t.true(stream.isWhole);
    assertTooMany(t, stream);
  }
  assertTooMany(t, await client.ask('GET', one));
  const h1 = await RawHttp1.open({ port: server.port, as: amber });
  t.teardown(() => h1.destroy());
  assertTooMany(t, (await h1.ask('GET', one))!);
  t.true((await server.metric('strata_limits_reached_total')) >= refused.length);
  const logged = server.logged.filter(({ event }) => event === 'limit.reached');
  t.true(logged.length >= 1 && logged.length <= 20, `${logged.length} lines for ${refused.length} refusals`);
});

test('when the bodies of one shard do not come on 20 connections of HTTP/1.1, all others are served', async (t) => {
  const { server, amber, birch, cache } = await aCast(t, { 'requests-in-flight-max': '20' });

  const clients = await Promise.all(Array.from({ length: 20 }, () => RawHttp1.open({ port: server.port, as: amber })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  for (const client of clients) {
    client.head('POST', aPath(), { ...json, 'content-length': '1000' });
    client.send('{');
  }
  // The server refuses some, unless one caller may have everything.
  await until(() => clients.some(({ answers }) => answers.length > 0), 2_000).catch(() => {});
  await assertServed(t, server, [
    ['another shard', birch],
    ['a cache', cache],
    ['a master', server.master],
  ]);

  const refused = clients.flatMap(({ answers }) => answers);
  t.true(refused.length < 20, `${refused.length} refused`);
  for (const answer of refused) assertTooMany(t, answer);
});

test('a cache that opens watches without end gets 429, and all others can still watch', async (t) => {
  const { server, amber, birch, cache } = await aCast(t, { 'open-watches-max': '50' });

  const client = await RawHttp2.open({ port: server.port, as: cache });
  t.teardown(() => client.destroy());
  const streams = Array.from({ length: 60 }, () => client.request('GET', `${everything}?watch=true`));
  await client.until(() => streams.every(({ status }) => status !== 0), 'an answer to each');
  for (const as of [amber, birch, server.master])
    for (const http2 of [false, true])
      t.is((await server.client({ as, http2 }).raw('GET', `${everything}?watch=true&timeoutSeconds=1`)).status, 200);

  const refused = streams.filter(({ status }) => status !== 200);
  t.true(refused.length >= 11 && refused.length < 60, `${refused.length} refused`);
  for (const stream of refused) assertTooMany(t, stream);
  t.true(streams.some(({ status }) => status === 200));
});

test('when all shards together are at their limits, masters and health checks are still served', async (t) => {
  const { server, amber, birch, cedar } = await aCast(t, { 'requests-in-flight-max': '20', 'open-watches-max': '20' });

  for (const as of [amber, birch, cedar]) {
    const { client } = await slowBodies(t, server.port, as, 20);
    for (let i = 0; i < 20; i += 1) client.request('GET', `${everything}?watch=true`);
    await client.ask('GET', '/livez');
  }

  await assertServed(t, server, [['a master', server.master]]);
  t.is((await server.client().raw('GET', `${everything}?watch=true&timeoutSeconds=1`)).status, 200);
});

test('silent connections, of TCP and of TLS without a certificate, keep out no caller that has a certificate', async (t) => {
  const { server, birch } = await aCast(t, { 'connections-max': '60' });
  const closing: (() => void)[] = [];
  t.teardown(() => closing.forEach((close) => close()));

  for (let i = 0; i < 70; i += 1) {
    const socket = connect({ host: '127.0.0.1', port: server.port });
    socket.on('error', () => {});
    closing.push(() => socket.destroy());
  }
  for (let i = 0; i < 20; i += 1) {
    const opened = await openTls({ port: server.port }).catch(() => undefined);
    if (opened !== undefined) closing.push(() => opened.tls.destroy());
  }

  await assertServed(t, server, [
    ['a shard', birch],
    ['a master', server.master],
  ]);
});

test('a shard that opens all the connections it can leaves room for others', async (t) => {
  const { server, amber, birch, cache } = await aCast(t, { 'connections-max': '60' });

  const opened = await Promise.allSettled(Array.from({ length: 80 }, () => RawHttp2.open({ port: server.port, as: amber })));
  const clients = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  const answers = await Promise.all(clients.map(async (client) => await client.ask('GET', one).catch(() => undefined)));

  await assertServed(t, server, [
    ['another shard', birch],
    ['a cache', cache],
    ['a master', server.master],
  ]);
  const served = answers.filter((answer) => answer?.status === 200);
  t.true(served.length > 0 && served.length < 60, `${served.length} of them are served`);
  for (const answer of answers) if (answer !== undefined && answer.status !== 200 && answer.status !== 0) assertTooMany(t, answer);
});
