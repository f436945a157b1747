/** How an agent uses connections to its shard, counted at the shard. */
import { once, setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { CacheError } from '../../../src/domain/errors.js';
import type { Clock } from '../../../src/domain/ports.js';
import { Http2Sessions } from '../../../src/kube/http2-sessions.js';
import { KubeClient, KubeRefusal } from '../../../src/kube/kube-client.js';
import type { KubeAccess } from '../../../src/kube/kube-access.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import type { KubeObject } from '../../support/kube-client.js';
import { breakOff, ShardStandIn, type StandInOptions } from '../../support/shard-stand-in.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { anAgent, sliceOf } from '../shard/an-agent.js';

const exports = 'apiexports.apis.kcp.io';
const listPath = '/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';
const userAgent = 'strata/test (push)';
const watchPath = `${listPath}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`;

class Rig {
  readonly shard: ShardStandIn;
  readonly client: KubeClient;
  readonly over = new AbortController();

  constructor(shard: ShardStandIn, client: KubeClient) {
    this.shard = shard;
    this.client = client;
    setMaxListeners(0, this.over.signal);
  }

  open(path: string): Promise<AsyncGenerator<Uint8Array, void>> {
    return this.client.open({ path, answerMsMax: 40_000, silenceMsMax: 60_000, signal: this.over.signal });
  }

  async names(): Promise<readonly string[]> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of await this.open(listPath)) chunks.push(chunk);
    const { items } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { items: readonly KubeObject[] };
    return items.map(({ metadata }) => metadata.name ?? '');
  }
}

/** `isProxied`: the client connects through a proxy to the stand-in. */
async function aRig(
  t: ExecutionContext,
  { clock = systemClock, isProxied = false, ...standIn }: StandInOptions & Readonly<{ clock?: Clock; isProxied?: boolean }> = {},
): Promise<Rig & Readonly<{ proxy: TcpProxy | undefined }>> {
  const shard = await ShardStandIn.start(standIn);
  const proxy = isProxied ? await TcpProxy.start(Number(new URL(shard.url).port)) : undefined;
  const server = proxy === undefined ? shard.url : `https://127.0.0.1:${proxy.port}`;
  const rig = new Rig(shard, new KubeClient({ access: { ...shard.access, server }, clock, userAgent }));
  t.teardown(async () => {
    rig.over.abort();
    rig.client.close();
    await proxy?.close();
    await shard.close();
  });
  shard.store.put(exports, 'root', named('a'));
  return Object.assign(rig, { proxy });
}

function named(name: string, spec = ''): KubeObject {
  return { spec, metadata: { name } };
}

largeTest('1,300 watches share as many connections as the shard needs for them', async (t) => {
  const rig = await aRig(t);

  const watches = await Promise.all(Array.from({ length: 1_300 }, () => rig.open(watchPath)));
  await Promise.all(watches.map((watch) => watch.next()));

  t.is(rig.shard.openWatches, 1_300);
  t.is(rig.shard.openConnections, 13);
  rig.over.abort();
  await until(() => rig.shard.openWatches === 0);
  t.deepEqual(await new Rig(rig.shard, rig.client).names(), ['a']);
  t.true(rig.shard.openConnections <= 13);
});

test('a connection that the shard is about to close keeps its watches, and gets no more requests', async (t) => {
  const rig = await aRig(t);
  const watch = await rig.open(watchPath);
  await watch.next();

  rig.shard.goAway();

  await until(async () => (await rig.names()).length === 1 && rig.shard.openConnections === 2);
  rig.shard.bookmark();
  t.false((await watch.next()).done);
  await watch.return();
  await until(() => rig.shard.openConnections === 1);
  t.is(rig.shard.openConnections, 1);
});

test('connections that end once their watches have ended do not count towards the maximum', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const { ca, authorization = '' } = await shard.access.credentials(new AbortController().signal);
  const options = { openMsMax: 30_000, pingIntervalMs: 30_000, pingMsMax: 15_000, sessionsMax: 2, windowBytes: 64 * 1_024 };
  const sessions = new Http2Sessions({ origin: shard.url, tls: { ca }, clock: systemClock }, options);
  const over = new AbortController();
  t.teardown(() => (over.abort(), sessions.close()));

  for (let watches = 1; watches <= 5; watches += 1) {
    const sent = await sessions.request({ path: watchPath, headers: { authorization }, signal: over.signal });
    await once(sent!.body, 'data');
    shard.goAway();
    await until(() => sent!.stream.session?.closed === true);
  }

  t.is(shard.openWatches, 5);
  t.is(shard.openConnections, 5);
});

test('an answer that nobody reads delays no other answer of its connection', async (t) => {
  const rig = await aRig(t);
  for (let i = 0; i < 100; i += 1) rig.shard.store.put(exports, 'root', named(`e${i}`, 'x'.repeat(50_000)));
  const unread = await Promise.all(Array.from({ length: 20 }, () => rig.open(listPath)));

  t.is((await rig.names()).length, 101);

  t.is(rig.shard.openConnections, 1);
  for (const each of unread) await each.return();
});

test('a shard that speaks only HTTP/1.1 is read over HTTP/1.1', async (t) => {
  const agent = await anAgent(t, { standIn: { http: 1 }, prepare: ({ store }) => store.put(exports, 'root', named('a')) });
  await agent.synced();
  const slice = sliceOf(exports);

  agent.shard.cut();
  agent.shard.store.put(exports, 'root', named('b'));
  agent.shard.store.delete(exports, 'root', 'a');

  await until(() => agent.slices.names(slice).join() === 'b');
  t.deepEqual(agent.slices.received.get(slice), ['begin', 'put a', 'end', 'put b', 'delete a']);
  // One connection per watch; the last one may open shortly after the first watch was read.
  await until(() => agent.shard.openConnections === agent.slices.slices.length);
  t.is(agent.shard.openConnections, agent.slices.slices.length);
});

for (const http of [1, 2] as const) {
  test(`the agent sends its user agent to the shard, over HTTP/${http}`, async (t) => {
    const rig = await anAgent(t, { standIn: { http } });
    await rig.synced();

    t.deepEqual([...new Set(rig.shard.callers.map((caller) => caller.userAgent))], ['strata/test (push)']);
  });

  test(`a refusal over HTTP/${http} carries its status, its message and its retry time`, async (t) => {
    const rig = await aRig(t, { http });
    rig.shard.instead = (_, answer) => {
      answer.writeHead(429, { 'retry-after': '7' });
      answer.end(JSON.stringify({ kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'later' }));
      return true;
    };

    const refused = await t.throwsAsync(rig.open(listPath), { instanceOf: KubeRefusal });

    t.like(refused, { status: 429, reason: 'TooManyRequests', message: 'later', retryAfterMs: 7_000 });
  });

  test(`an unanswered request over HTTP/${http} ends within its time, and an aborted one ends at once`, async (t) => {
    const rig = await aRig(t, { http });
    rig.shard.instead = () => true;
    const ask = (answerMsMax: number, signal: AbortSignal): Promise<unknown> =>
      rig.client.open({ path: listPath, answerMsMax, silenceMsMax: 60_000, signal });

    await t.throwsAsync(ask(200, rig.over.signal), { instanceOf: CacheError, message: 'the server did not answer within 0.2 s' });
    const stopping = new AbortController();
    setTimeout(() => stopping.abort(new CacheError('stopped soon')), 200);
    await t.throwsAsync(ask(60_000, stopping.signal), { message: 'stopped soon' });
    await t.throwsAsync(ask(60_000, AbortSignal.abort(new CacheError('stopped'))), { message: 'stopped' });
  });

  test(`an answer over HTTP/${http} that breaks off counts as incomplete`, async (t) => {
    const rig = await aRig(t, { http });
    rig.shard.instead = (_, answer) => {
      answer.writeHead(200);
      answer.write('{"items":[', () => breakOff(answer));
      return true;
    };
    const read = async (): Promise<void> => {
      for await (const _ of await rig.open(listPath));
    };
    await t.throwsAsync(read());
    rig.shard.instead = (_, answer) => {
      answer.writeHead(200);
      answer.write('{"items":[', () => rig.shard.cut());
      return true;
    };
    await t.throwsAsync(read());
    rig.shard.instead = () => false;
    t.deepEqual(await rig.names(), ['a']);
  });
}

test('a connection that answers no ping is closed, and its requests fail', async (t) => {
  const clock = new ManualClock();
  const rig = await aRig(t, { clock, isProxied: true });
  const watch = await rig.open(watchPath);
  await watch.next();
  const next = watch.next();

  rig.proxy?.blackhole();
  clock.advance(30_000);
  clock.advance(15_000);

  await t.throwsAsync(next);
  rig.proxy?.heal();
  t.deepEqual(await rig.names(), ['a']);
});

test('a shard that accepts connections and stays silent fails the request in time', async (t) => {
  const clock = new ManualClock();
  const rig = await aRig(t, { clock, isProxied: true });
  rig.proxy?.blackhole();

  const opening = rig.open(watchPath);
  await until(() => clock.pending >= 2);
  clock.advance(30_000);

  await t.throwsAsync(opening, { message: 'the server did not answer within 30 s' });
});

test('a closed connection ends, though its peer no longer responds', async (t) => {
  const clock = new ManualClock();
  const rig = await aRig(t, { clock, isProxied: true });
  await rig.names();

  rig.proxy?.blackhole();
  rig.client.close();
  await sleep(100);
  clock.advance(30_000);
  clock.advance(15_000);

  await until(() => clock.pending === 0);
  t.pass();
});

test('a connection without requests is closed, and one with a watch is not', async (t) => {
  const clock = new ManualClock();
  const rig = await aRig(t, { clock, streamsMax: 1 });
  const watch = await rig.open(watchPath);
  await watch.next();
  await rig.names();
  t.is(rig.shard.openConnections, 2);

  for (let pings = 0; pings < 3; pings += 1) {
    clock.advance(30_000);
    // Waits for the answer to each ping, which cancels its timeout.
    await until(() => clock.nextInMs >= 30_000);
  }

  await until(() => rig.shard.openConnections === 1);
  t.is(rig.shard.openWatches, 1);
});

test('a shard that allows no requests on a connection is not sent one connection after another', async (t) => {
  const rig = await aRig(t, { streamsMax: 0 });

  await t.throwsAsync(rig.open(listPath), { message: 'the server allows no requests on a connection' });

  await until(() => rig.shard.openConnections === 0);
});

test('requests that wait for a connection while the certificates rotate are all served', async (t) => {
  const shard = await ShardStandIn.start({ streamsMax: 2 });
  t.teardown(() => shard.close());
  let rotated = '';
  const credentials: KubeAccess['credentials'] = async (signal) => {
    const given = await shard.access.credentials(signal);
    return { ...given, ca: `${given.ca}${rotated}` };
  };
  const rig = new Rig(shard, new KubeClient({ access: { ...shard.access, credentials }, clock: systemClock, userAgent }));
  t.teardown(() => {
    rig.over.abort();
    rig.client.close();
  });

  const before = Array.from({ length: 50 }, () => rig.open(watchPath));
  await until(() => shard.openConnections > 3);
  rotated = '\n';
  const after = rig.open(watchPath);

  const outcomes = await Promise.allSettled([...before, after]);
  t.deepEqual(
    outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : [])),
    [],
  );
});

test('a shard that spoke only HTTP/1.1 is asked for HTTP/2 again after a minute', async (t) => {
  const clock = new ManualClock();
  const [old, present] = [await ShardStandIn.start({ http: 1 }), await ShardStandIn.start()];
  const proxy = await TcpProxy.start(Number(new URL(old.url).port));
  const credentials: KubeAccess['credentials'] = async (signal) => {
    const [one, other] = await Promise.all([old.access.credentials(signal), present.access.credentials(signal)]);
    return { ...other, ca: `${one.ca}\n${other.ca}` };
  };
  const access = { ...present.access, server: `https://127.0.0.1:${proxy.port}`, credentials };
  const rig = new Rig(present, new KubeClient({ access, clock, userAgent }));
  t.teardown(async () => {
    rig.over.abort();
    rig.client.close();
    await proxy.close();
    await Promise.all([old.close(), present.close()]);
  });
  for (const shard of [old, present]) shard.store.put(exports, 'root', named('a'));
  t.deepEqual(await rig.names(), ['a']);

  proxy.redirect(Number(new URL(present.url).port));
  proxy.cut();
  await t.throwsAsync(rig.names());
  clock.advance(60_000);

  t.deepEqual(await rig.names(), ['a']);
});
