/**
 * Answers that nobody reads cost a bounded amount of memory, delay nobody, and end after their
 * timeout, whoever asked for them.
 *
 * Figures are those of a server in a process of its own. Comments at the tests give those of commit
 * e892933.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { Bystander, formatDelays } from '../support/bystander.js';
import { aPath, anApiExport } from '../support/objects.js';
import { descriptors, residentMiB, residentMiBDuring } from '../support/process-figures.js';
import { RawHttp1 } from '../support/raw-http1.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { setTimeout as sleep } from 'node:timers/promises';

const nobodyMiBMax = 150;
const readerMiBMax = 250;
/**
 * On top of another client's delay without a bad client. The goal is a third of it on a quiet
 * machine; a server with the faults took ten times the goal and more.
 */
const othersP99MsMax = 3 * 50;
/** The default `--send-timeout`, and some time until the last client is seen to be gone. */
const cutMsMax = 30_000 + 15_000;
const holdMs = 5_000;
const quietMs = 2_000;

type Known = Readonly<{
  server: StrataProcess;
  bystander: Bystander;
  large: string;
  as: Awaited<ReturnType<StrataProcess['authority']['issue']>>;
}>;

/** A server with one object of 2.9 MB and a small one, and a client that reads the small one. */
async function aServer(t: ExecutionContext): Promise<Known> {
  t.timeout(180_000);
  const server = await StrataProcess.start();
  t.teardown(() => server[Symbol.asyncDispose]());
  const [as, other] = ['amber', 'birch'].map((user) =>
    server.authority.issue({ user, groups: ['strata'], uris: [`strata://shard/${user}`] }),
  );
  const client = server.client();
  await client.create(aPath(), anApiExport());
  await client.create(aPath({ cluster: 'large' }), anApiExport({ name: 'large' }, { spec: { text: 'x'.repeat(2.9 * 1000 * 1000) } }));
  const bystander = await Bystander.start({ url: server.url, as: other!, path: aPath({ name: 'one' }) });
  t.teardown(() => bystander[Symbol.asyncDispose]());
  return { server, bystander, large: aPath({ cluster: 'large', name: 'large' }), as: as! };
}

/**
 * How much memory the server holds during `ask` and for a while after it, and the delays of another
 * client.
 */
async function figures(t: ExecutionContext, { server, bystander }: Known, ask: () => Promise<void>) {
  const before = await residentMiB(server.pid);
  await bystander.delays();
  await sleep(quietMs);
  const quiet = await bystander.delays();
  const most = await residentMiBDuring(server.pid, async () => {
    await ask();
    await sleep(holdMs);
  });
  const delays = await bystander.delays();
  t.log(`resident ${before.toFixed()} → ${most.toFixed()} MiB; another reader: ${formatDelays(delays)}; before: ${formatDelays(quiet)}`);
  return { most, delays, p99MsMax: othersP99MsMax + quiet.p99 };
}

async function allOf<T>(count: number, open: () => Promise<T>): Promise<readonly T[]> {
  const opened: T[] = [];
  for (let at = 0; at < count; at += 50) {
    const some = await Promise.allSettled(Array.from({ length: Math.min(50, count - at) }, open));
    opened.push(...some.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
  }
  return opened;
}

for (const [what, excludedBytes] of [
  // Commit e892933 took 1,2xx MiB.
  ['60 kB of exclusions', 60_000],
  ['7 kB of exclusions, which an anonymous caller may send', 7_000],
] as const) {
  test.serial(`90 anonymous connections that give no window and ask for health 100 times with ${what} cost little memory`, async (t) => {
    const known = await aServer(t);
    const path = `/livez?verbose&exclude=${'x'.repeat(excludedBytes)}`;
    const clients: RawHttp2[] = [];
    t.teardown(() => clients.forEach((client) => client.destroy()));

    const { most, delays } = await figures(t, known, async () => {
      clients.push(...(await allOf(90, () => RawHttp2.open({ port: known.server.port, windowBytes: 0 }))));
      for (const client of clients) for (let i = 0; i < 100; i += 1) client.request('GET', path);
    });

    t.is(clients.length, 90);
    t.true(most <= nobodyMiBMax, `${most} MiB`);
    t.is(delays.failed, 0, delays.failures.join('; '));
    await until(() => clients.every((client) => client.isClosed || [...client.streams.values()].every(({ isOver }) => isOver)), cutMsMax);
  });
}

test.serial('90 anonymous connections over HTTP/1.1 that read none of 100 answers each cost little memory', async (t) => {
  const known = await aServer(t);
  const clients: RawHttp1[] = [];
  t.teardown(() => clients.forEach((client) => client.destroy()));

  const { most, delays } = await figures(t, known, async () => {
    clients.push(...(await allOf(90, () => RawHttp1.open({ port: known.server.port }))));
    for (const client of clients) {
      client.stopReading();
      for (let i = 0; i < 100; i += 1) client.head('GET', `/livez?verbose&exclude=${'x'.repeat(12_000)}`);
    }
  });

  t.is(clients.length, 90);
  t.true(most <= nobodyMiBMax, `${most} MiB`);
  t.is(delays.failed, 0, delays.failures.join('; '));
});

for (const [what, windowBytes, reads] of [
  ['give no window', 0, true],
  ['never read', 2 ** 31 - 1, false],
] as const) {
  test.serial(`10 connections of one reader that ask 100 times for 2.9 MB and ${what} cost little memory, and delay nobody`, async (t) => {
    const known = await aServer(t);
    const clients: RawHttp2[] = [];
    t.teardown(() => clients.forEach((client) => client.destroy()));
    const before = await descriptors(known.server.pid);

    const { most, delays, p99MsMax } = await figures(t, known, async () => {
      clients.push(...(await allOf(10, () => RawHttp2.open({ port: known.server.port, as: known.as, windowBytes }))));
      for (const client of clients) {
        if (!reads) client.stopReading();
        for (let i = 0; i < 100; i += 1) client.request('GET', known.large);
      }
    });

    t.is(clients.length, 10);
    t.true(most <= readerMiBMax, `${most} MiB`);
    t.is(delays.failed, 0, delays.failures.join('; '));
    t.true(delays.p99 <= p99MsMax, formatDelays(delays));
    if (reads)
      await until(() => clients.every((client) => client.isClosed || [...client.streams.values()].every(({ isOver }) => isOver)), cutMsMax);
    else await until(async () => (await descriptors(known.server.pid)) <= before, cutMsMax);
  });
}

test.serial('1,000 connections of one reader over HTTP/1.1 that never read 2.9 MB cost little memory, and delay nobody', async (t) => {
  const known = await aServer(t);
  const clients: RawHttp1[] = [];
  t.teardown(() => clients.forEach((client) => client.destroy()));
  clients.push(...(await allOf(1_000, () => RawHttp1.open({ port: known.server.port, as: known.as }))));
  t.is(clients.length, 1_000);
  const before = await residentMiB(known.server.pid);

  const { most, delays, p99MsMax } = await figures(t, known, async () => {
    for (const client of clients) {
      client.stopReading();
      client.head('GET', known.large);
    }
  });

  // Leaves out the memory of the connections themselves.
  t.true(most - before <= readerMiBMax, `${before} → ${most} MiB`);
  t.is(delays.failed, 0, delays.failures.join('; '));
  t.true(delays.p99 <= p99MsMax, formatDelays(delays));
});

/** Commit e892933 took up to 4 MiB for each watch, 830 MiB together. */
test.serial('200 watches with different selectors that read nothing cost little memory together, though each may hold 4 MiB', async (t) => {
  t.timeout(180_000);
  const server = await StrataProcess.start();
  t.teardown(() => server[Symbol.asyncDispose]());
  const client = server.client();
  const as = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const clients = await allOf(20, () => RawHttp2.open({ port: server.port, as, windowBytes: 0, silent: true }));
  t.teardown(() => clients.forEach((each) => each.destroy()));
  const watches = clients.flatMap((each, at) =>
    Array.from({ length: 10 }, (_, i) => each.request('GET', `${aPath()}?watch=true&labelSelector=team!%3Dt${at * 10 + i}`)),
  );
  await until(() => watches.every(({ status }) => status === 200));
  const before = await residentMiB(server.pid);

  const most = await residentMiBDuring(server.pid, async () => {
    for (let i = 0; i < 80; i += 1) await client.create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(60_000) } }));
  });

  t.log(`resident ${before.toFixed()} → ${most.toFixed()} MiB`);
  t.is(clients.length, 20);
  t.true(most - before <= 1.5 * readerMiBMax, `${before} → ${most} MiB`);
});
