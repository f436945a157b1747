/**
 * Finds a watch, body, list or connection that goes on after the end of the certificate that opened
 * it. On commit e892933 a watch went on until its own timeout, which its client chooses.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until } from '../../support/test-server.js';

const json = { 'content-type': 'application/json' };
const forEver = `${aPath({ shard: '*', cluster: '*' })}?watch=true&timeoutSeconds=99999999999`;
const validitySeconds = 3;
/** Tolerance, because openssl writes whole seconds and a busy machine is late. */
const lateMs = 1_500;

test('watches, bodies, unread lists and connections end with their certificate, over both protocols', async (t) => {
  const server = await aServer(t);
  await server.client().create(aPath(), anApiExport({}, { spec: { text: 'x'.repeat(2_000_000) } }));
  const issuedMs = performance.now();
  const as = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'], validitySeconds });
  const place = { port: server.port, as };
  const [h2, idle, unread, watching, writing] = await Promise.all([
    RawHttp2.open(place),
    RawHttp2.open(place),
    RawHttp2.open({ ...place, windowBytes: 0 }),
    RawHttp1.open(place),
    RawHttp1.open(place),
  ]);
  const all = { h2, idle, unread, watching, writing };
  t.teardown(() => Object.values(all).forEach((client) => client.destroy()));

  const watch = h2.request('GET', forEver);
  const body = h2.request('POST', aPath(), { headers: json, ends: false });
  h2.data(body.id, Buffer.from('{'));
  const list = unread.request('GET', aPath());
  watching.head('GET', forEver);
  writing.head('POST', aPath(), { ...json, 'content-length': '1000' });
  writing.send('{');
  await until(async () => (await server.metric('strata_watches_open')) === 2, validitySeconds * 1000);
  await h2.until(() => watch.status === 200, 'the head of a watch');
  t.false(h2.isClosed);
  await unread.until(() => list.status === 200, 'the head of a list');

  await sleep(validitySeconds * 1000 + lateMs - (performance.now() - issuedMs));

  t.is(await server.metric('strata_watches_open'), 0, 'watches open after the end of their certificate');
  for (const [name, client] of Object.entries(all)) t.true(client.isClosed, `${name} is open after the end of its certificate`);
  await t.throwsAsync(
    async () => {
      const late = await RawHttp2.open(place);
      t.teardown(() => late.destroy());
      const { status } = await late.ask('GET', aPath());
      throw new Error(`answered ${status}`);
    },
    { message: /answered 403|closed|hang up|disconnected/ },
  );
});

test('a watch ends within --watch-timeout-max, whatever timeout it asked for, over both protocols', async (t) => {
  const server = await aServer(t, { flags: { 'watch-timeout-min': '1s', 'watch-timeout-max': '1s' } });
  const startedMs = performance.now();

  for (const http2 of [false, true]) t.is((await server.client({ http2 }).raw('GET', forEver, { timeoutMs: 5_000 })).status, 200);

  t.true(performance.now() - startedMs < 5_000);
});
