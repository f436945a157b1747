/**
 * Thousands of watches at once over HTTP/2 must not harm the turns of the event loop, another
 * client's writes or another informer. They have selectors, come back together after a restart, or
 * are all behind.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bystander, formatDelays } from '../support/bystander.js';
import type { KubeClient } from '../support/kube-client.js';
import { longestTurnMs, meteredEnvironment } from '../support/longest-turn.js';
import { aPath, anApiExport } from '../support/objects.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';

/**
 * The goal is 20 on a quiet machine. A server with the faults took 3,200 ms for a resume, and 17 ms
 * for each change of a commit past thousands of selectors.
 */
const turnMsMax = 30;
/**
 * The goal is 50 on a quiet machine, where the clients do not take half of its processors. A server
 * with the fault took 2,500 ms.
 */
const writesP99MsMax = 500;
const streamsOfOne = 100;
const everything = aPath({ shard: '*', cluster: '*' });

type Known = Readonly<{ server: StrataProcess; client: KubeClient; folder: string }>;

async function aServer(t: ExecutionContext, flags: readonly string[] = []): Promise<Known> {
  t.timeout(300_000);
  const folder = mkdtempSync(join(tmpdir(), 'strata-turns-'));
  const server = await StrataProcess.start({ environment: meteredEnvironment(folder), flags });
  t.teardown(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  return { server, client: server.client({ http2: true }), folder };
}

type Watched = ReturnType<RawHttp2['request']>;

/** Opens one watch for each target with all rights, a hundred on each connection. */
async function watches(t: ExecutionContext, { port, master }: StrataProcess, targets: readonly string[]): Promise<readonly Watched[]> {
  const count = Math.ceil(targets.length / streamsOfOne);
  const clients: RawHttp2[] = [];
  for (let i = 0; i < count; i += 10)
    clients.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(10, count - i) }, () => RawHttp2.open({ port, as: master, windowBytes: 1 << 20 })),
      )),
    );
  for (const client of clients) client.windowUpdate(0, 1 << 24);
  t.teardown(() => clients.forEach((client) => client.destroy()));
  return targets.map((target, i) => clients[Math.floor(i / streamsOfOne)]!.request('GET', target));
}

async function areOpen(opened: readonly Watched[]): Promise<void> {
  await until(() => opened.every(({ status }) => status === 200), 60_000);
}

/** Creates objects named n<i> with the given labels at full speed, from several writers. */
async function write(
  client: KubeClient,
  from: number,
  count: number,
  labels: (i: number) => Record<string, string> = () => ({}),
): Promise<void> {
  let next = from;
  const hand = async (): Promise<void> => {
    for (let i = (next += 1) - 1; i < from + count; i = (next += 1) - 1)
      await client.create(aPath({ cluster: `c${i % 100}` }), anApiExport({ name: `n${i}`, labels: labels(i) }));
  };
  await Promise.all(Array.from({ length: 16 }, hand));
}

test.serial('8,000 watches with 8,000 selectors cause no turn of more than 30 ms while others write, and each gets its own', async (t) => {
  const known = await aServer(t);
  const targets = Array.from({ length: 8_000 }, (_, i) => `${everything}?watch=true&labelSelector=team%3Dt${i}`);
  const picky = await watches(t, known.server, targets);
  await areOpen(picky);
  const [plain] = await watches(t, known.server, [`${everything}?watch=true`]);
  await areOpen([plain!]);
  await write(known.client, 0, 300);

  let written = 300;
  const turnMs = await longestTurnMs(known.folder, { roundsMax: 6, enoughMs: 20, prepare: () => sleep(200) }, async () => {
    await write(known.client, written, 300, (i) => ({ team: `t${i}` }));
    written += 300;
  });

  t.log(`longest turn ${turnMs.toFixed(1)} ms`);
  t.true(turnMs <= turnMsMax, `${turnMs} ms`);
  await until(() => plain!.text.split('\n').length - 1 >= written || plain!.bytes > 900_000, 20_000);
  await until(() => [350, 599].every((i) => picky[i]!.text.includes(`"n${i}"`)), 20_000);
  t.is(picky[351]!.text.split('\n').length - 1, 1, 'the watch has received only the event of its own object');
});

test.serial('400 watches that resume over 4,000 changes cause no turn of more than 30 ms, and another client writes on', async (t) => {
  const known = await aServer(t);
  const { metadata } = await known.client.list(everything);
  await write(known.client, 0, 4_000);

  const one = aPath({ cluster: 'other', name: 'one' });
  await known.client.create(aPath({ cluster: 'other' }), anApiExport());
  const bystander = await Bystander.start({ url: known.server.url, as: known.server.master, path: one, writes: true });
  t.teardown(() => bystander[Symbol.asyncDispose]());
  await bystander.delays();
  await sleep(1_000);
  const before = await bystander.delays();

  const turnMs = await longestTurnMs(known.folder, { roundsMax: 3, enoughMs: 20, prepare: () => sleep(500) }, async () => {
    const startedMs = performance.now();
    const target = `${everything}?watch=true&resourceVersion=${metadata.resourceVersion}`;
    const opened = await watches(
      t,
      known.server,
      Array.from({ length: 400 }, () => target),
    );
    await until(() => opened.every(({ bytes }) => bytes > 4_000 * 300), 120_000);
    t.log(`all have 1.2 MB after ${(performance.now() - startedMs).toFixed()} ms`);
    t.true(opened.every(({ isOver }) => !isOver));
  });
  const delays = await bystander.delays();

  t.log(`longest turn ${turnMs.toFixed(1)} ms; another client's writes: ${formatDelays(delays)}; before: ${formatDelays(before)}`);
  t.true(turnMs <= turnMsMax, `${turnMs} ms`);
  t.is(delays.failed, 0, delays.failures.join());
  t.true(delays.p99 <= writesP99MsMax, formatDelays(delays));
});

test.serial(
  '10,000 watches that come back after a restart, 10,000 changes behind, are all live within 10 s, and the server ends none',
  async (t) => {
    const known = await aServer(t);
    const { metadata } = await known.client.list(everything);
    await write(known.client, 0, 10_000);
    await known.server.restart('SIGTERM');
    const client = known.server.client({ http2: true });

    const startedMs = performance.now();
    // Each watch selects one name, so an event of its own object shows that it is live.
    const targets = Array.from(
      { length: 10_000 },
      (_, i) => `${everything}?watch=true&fieldSelector=metadata.name%3Dn${i}&resourceVersion=${metadata.resourceVersion}`,
    );
    const opened = await watches(t, known.server, targets);
    await until(() => opened.every(({ text }) => text.includes('"ADDED"')), 60_000);
    const tookMs = performance.now() - startedMs;

    t.log(`all have what they missed ${tookMs.toFixed()} ms after the first connects`);
    t.true(tookMs <= 10_000, `${tookMs} ms`);
    t.true(opened.every(({ isOver, text }) => !isOver && !text.includes('"ERROR"')));
    for (const i of [0, 5_000, 9_999]) await client.delete(aPath({ cluster: `c${i % 100}`, name: `n${i}` }));
    await until(() => [0, 5_000, 9_999].every((i) => opened[i]!.text.includes('"DELETED"')), 10_000);
  },
);
