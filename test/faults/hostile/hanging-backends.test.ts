/**
 * A front door with backends that hang, are far away or slow, and with a crowd of callers. Apart
 * from its other tests, because these wait for timeouts of the real clock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';

test('the front door notices within 15 s that a backend hangs, and other backends answer meanwhile', async (t) => {
  t.timeout(120_000);
  const { door, toBirch } = await anInstallation(t);
  t.is((await door.client().raw('GET', '/clusters/root:org:team/echo')).status, 200);
  toBirch.blackhole();
  const startedMs = performance.now();
  const hanging = door.client().raw('GET', '/clusters/root:org:team/echo');
  const others: number[] = [];
  let isOver = false;
  t.teardown(() => (isOver = true));
  const asking = (async () => {
    while (!isOver) {
      const beganMs = performance.now();
      t.is((await door.client().raw('GET', '/clusters/root/echo')).status, 200);
      others.push(performance.now() - beganMs);
      await sleep(20);
    }
  })();
  const { status } = await hanging;
  isOver = true;
  await asking;
  t.is(status, 502);
  t.true(performance.now() - startedMs < 16_000, `${performance.now() - startedMs} ms`);
  t.true((others.toSorted((a, b) => a - b)[Math.floor(others.length / 2)] ?? Infinity) < 1_000);
  const next = await door.client().raw('GET', '/clusters/root:org:team/echo');
  t.deepEqual([next.status, next.headers['retry-after']], [503, '1'], 'a new connection is not made either');
});

test('the front door ends the request of a client that leaves while the backend does not read it', async (t) => {
  t.timeout(120_000);
  const { door, amber } = await anInstallation(t);
  const stop = new AbortController();
  const asking = door
    .client({ http2: false })
    .raw('POST', '/clusters/root/never', { body: 'x'.repeat(5_000_000), signal: stop.signal })
    .catch(() => 'gone');
  await until(() => amber.open.get('never')?.size === 1);
  stop.abort();
  t.is(await asking, 'gone');
  await until(() => amber.open.get('never')?.size === 0, 45_000);
  t.pass();
});

test('an answer of 5 MB takes far fewer round trips to a backend than one for every 64 KiB', async (t) => {
  t.timeout(120_000);
  const { door, toBirch } = await anInstallation(t);
  const journeyMs = 500;
  toBirch.delay(journeyMs / 2);
  t.is((await door.client().raw('GET', '/clusters/root:org:team/echo')).status, 200);
  const beganMs = performance.now();
  const { text } = await door.client().raw('GET', '/clusters/root:org:team/big?bytes=5000000', { timeoutMs: 60_000 });
  const journeys = (performance.now() - beganMs) / journeyMs;
  t.is(text.length, 5_000_000);
  t.log(`as long as ${journeys.toFixed(1)} journeys`);
  // With Node's window of 64 KiB a stream it takes 77 round trips. A busy machine adds some
  // seconds.
  t.true(journeys < 40, `${journeys} journeys`);
});

test('answers that a slow network brings for longer than a ping may take are not cut off', async (t) => {
  t.timeout(120_000);
  const { door, toBirch } = await anInstallation(t);
  toBirch.narrow(60 * 1024);
  const answers = await Promise.all(
    [1, 2].map(() => door.client({ http2: true }).raw('GET', '/clusters/root:org:team/big?bytes=600000', { timeoutMs: 60_000 })),
  );
  t.deepEqual(
    answers.map(({ status, text }) => [status, text.length]),
    [
      [200, 600_000],
      [200, 600_000],
    ],
  );
});

test('callers without a certificate, who may have tokens, never keep out a caller that has a certificate', async (t) => {
  const { door } = await anInstallation(t, { flags: { 'connections-max': '40' } });
  const strangers = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const client = door.client({ as: null, http2: true });
      return client.raw('GET', '/readyz').then(
        ({ status }) => status,
        () => 'ended',
      );
    }),
  );
  t.true(strangers.filter((status) => status === 200).length >= 20, `${strangers.join(' ')}`);
  for (let i = 0; i < 10; i += 1) t.is((await door.client({ http2: true }).raw('GET', '/clusters/root/echo')).status, 200);
});
