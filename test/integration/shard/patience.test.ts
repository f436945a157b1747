/**
 * How a reader treats a shard that refuses, breaks off, or has lost some of its history: over TLS,
 * and on the real clock unless a test uses a LeapingClock.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { KubeObject } from '../../support/kube-client.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { aClusterCachedResource } from '../../support/objects.js';
import { breakOff } from '../../support/shard-stand-in.js';
import { until } from '../../support/test-server.js';
import { anAgent, sliceOf, type AgentRig } from './an-agent.js';

const exports = 'apiexports.apis.kcp.io';
const slice = sliceOf(exports);

function named(name: string, spec = ''): KubeObject {
  return { spec, metadata: { name } };
}

function refuse(answer: ServerResponse, code: number, more: object = {}, headers: Readonly<Record<string, string>> = {}): true {
  answer.writeHead(code, { 'content-type': 'application/json', ...headers });
  answer.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'refused', code, ...more }));
  return true;
}

/** The URLs of requests for APIExports. */
function asked(rig: AgentRig): readonly URL[] {
  return rig.asked('apiexports').map((path) => new URL(path, 'https://shard'));
}

function warnings(rig: AgentRig): readonly unknown[] {
  return rig.logged.filter(({ level, fields }) => level === 'warn' && fields['resource'] === 'apiexports');
}

function words(rig: AgentRig, word: string): number {
  return (rig.slices.received.get(slice) ?? []).filter((each) => each === word).length;
}

function isOf(url: URL, resource: string): boolean {
  return url.pathname.endsWith(`/${resource}`);
}

/**
 * Advances the clock by `ms`, or less if the condition holds earlier; returns by how much. After
 * each leap the agent gets some turns for its due work.
 */
async function pass(clock: LeapingClock, ms: number, condition = (): boolean => false): Promise<number> {
  const beganMs = clock.now();
  for (; clock.now() - beganMs < ms && !condition(); await sleep(5)) clock.leap(50);
  return clock.now() - beganMs;
}

test('a type whose lists fail is requested at growing intervals, with one warning', async (t) => {
  let isFailing = true;
  const clock = new LeapingClock();
  const rig = await anAgent(t, {
    clock,
    random: Math.random,
    prepare: (shard) => {
      shard.store.put(exports, 'root', named('a'));
      shard.refusesWatchList = true;
      shard.instead = (url, answer) => isFailing && isOf(url, 'apiexports') && !url.searchParams.has('watch') && refuse(answer, 500);
    },
  });
  await until(() => rig.slices.synced.has(sliceOf('apiresourceschemas.apis.kcp.io')));

  await pass(clock, 10_000);

  // Waits of at least 0, 0.8, 1.6, 3.2 and 6.4 s, after the one watch-list that is refused.
  t.true(asked(rig).length <= 6, `${asked(rig).length} requests in 10 s`);
  t.is(warnings(rig).length, 1);
  isFailing = false;
  // The current wait is at most 12.8 s.
  await pass(clock, 15_000, () => rig.slices.names(slice).length === 1);
  t.is(rig.slices.names(slice).length, 1);
  const recoveries = () => rig.logged.filter(({ event }) => event === 'source.read.recovered').length;
  await until(() => recoveries() > 0);
  t.is(recoveries(), 1);
});

test('a shard that asks for a wait gets no request before the wait is over', async (t) => {
  const at: number[] = [];
  const rig = await anAgent(t, {
    prepare: (shard) => {
      shard.instead = (url, answer) => {
        if (!isOf(url, 'apiexports')) return false;
        at.push(Date.now());
        return at.length === 1 && refuse(answer, 429, {}, { 'retry-after': '2' });
      };
    },
  });

  await until(() => rig.slices.synced.has(slice));

  t.is(at.length, 2);
  t.true((at[1] ?? 0) - (at[0] ?? 0) >= 2_000, at.join());
});

test('bookmarks that repeat a revision do not count as progress', async (t) => {
  let asked = 0;
  const rig = await anAgent(t, {
    prepare: (shard) => {
      shard.instead = (url, answer) => {
        const revision = url.searchParams.get('resourceVersion');
        if (!isOf(url, 'apiexports') || revision === null) return false;
        asked += 1;
        answer.writeHead(200, { 'content-type': 'application/json' });
        answer.end(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: revision } } })}\n`);
        return true;
      };
    },
  });
  await until(() => rig.slices.synced.has(slice));
  rig.shard.cut();

  await sleep(5_000);
  await until(() => asked >= 2);

  t.true(asked <= 6, `${asked} requests in 5 s`);
});

test('a shard that is away is logged in a few lines, however many types are read', async (t) => {
  let isAway = false;
  const rig = await anAgent(t, {
    random: Math.random,
    prepare: (shard) => {
      shard.store.serve({ group: 'machines.svm.io', version: 'v1', resource: 'instances', kind: 'Instance', identity: '' });
      for (let i = 0; i < 200; i += 1)
        shard.store.put('clustercachedresources.cache.kcp.io', `c${i}`, { metadata: {}, ...aClusterCachedResource(`hash-${i}`) });
      shard.instead = (_, answer) => isAway && refuse(answer, 500);
    },
  });
  await until(() => rig.slices.synced.size > 200);

  isAway = true;
  rig.shard.cut();
  await sleep(6_000);

  const lines = rig.logged
    .filter(({ level }) => level === 'warn' || level === 'info')
    .filter(({ event }) => event.startsWith('source.read'));
  t.true(lines.length > 0 && lines.length <= 20, `${lines.length} lines`);
});

test('a type that the shard begins to serve later is read within some seconds', async (t) => {
  const late = 'apiconversions.apis.kcp.io';
  const clock = new LeapingClock();
  const rig = await anAgent(t, { clock, random: Math.random, prepare: ({ store }) => store.hide(late) });
  await until(() => rig.slices.synced.has(slice));
  // By then, the waits for any other failure would have grown to half a minute.
  await pass(clock, 40_000);

  rig.shard.store.serve({ group: 'apis.kcp.io', version: 'v1alpha1', resource: 'apiconversions', kind: 'APIConversion', identity: '' });
  const servedAfterMs = await pass(clock, 10_000, () => rig.slices.synced.has(sliceOf(late)));

  t.true(servedAfterMs <= 8_000, `${servedAfterMs} ms`);
});

test('a watch-list that the shard always breaks off is not requested again and again', async (t) => {
  const rig = await anAgent(t, {
    prepare: (shard) => {
      for (let i = 0; i < 20; i += 1) shard.store.put(exports, 'root', named(`e${i}`));
      shard.instead = (url, answer) => {
        if (!isOf(url, 'apiexports') || !url.searchParams.has('sendInitialEvents')) return false;
        const metadata = { name: 'e1', uid: 'u', resourceVersion: '101', annotations: { 'kcp.io/cluster': 'root' } };
        answer.end(`${JSON.stringify({ type: 'ADDED', object: { kind: 'APIExport', apiVersion: 'apis.kcp.io/v1alpha2', metadata } })}\n`);
        return true;
      };
    },
  });

  await until(() => rig.slices.synced.has(slice));

  t.is(rig.slices.names(slice).length, 20);
  t.is(asked(rig).filter((url) => url.searchParams.has('sendInitialEvents')).length, 1);
});

test('a page that breaks off causes no other page to be read again', async (t) => {
  let pages = 0;
  const rig = await anAgent(t, {
    prepare: (shard) => {
      for (let i = 0; i < 2_200; i += 1) shard.store.put(exports, 'root', named(`e${i}`));
      shard.refusesWatchList = true;
      shard.instead = (url, answer) => {
        if (!isOf(url, 'apiexports') || !url.searchParams.has('limit')) return false;
        pages += 1;
        if (pages % 2 === 1) return false;
        answer.writeHead(200, { 'content-type': 'application/json' });
        answer.write('{"items":[{"metadata":', () => breakOff(answer));
        return true;
      };
    },
  });

  await until(() => rig.slices.synced.has(slice));

  t.is(rig.slices.names(slice).length, 2_200);
  t.is(words(rig, 'begin'), 1);
  t.is(pages, 9);
});

for (const isContinued of [true, false]) {
  const ends = isContinued ? 'goes on with the token that the shard gives instead' : 'begins anew in one answer';
  test(`a list whose token expires ${ends}`, async (t) => {
    let hasExpired = false;
    const rig = await anAgent(t, {
      prepare: (shard) => {
        for (let i = 0; i < 1_200; i += 1) shard.store.put(exports, 'root', named(`e${i}`));
        shard.refusesWatchList = true;
        shard.instead = (url, answer) => {
          const token = url.searchParams.get('continue');
          if (!isOf(url, 'apiexports') || token === null || hasExpired) return false;
          hasExpired = true;
          shard.store.put(exports, 'root', named('e0', 'changed meanwhile'));
          const [, after = ''] = token.split('\n');
          const metadata = isContinued ? { continue: `${shard.store.revision}\n${after}` } : {};
          return refuse(answer, 410, { reason: 'Expired', metadata });
        };
      },
    });

    await until(() => rig.slices.synced.has(slice) && rig.slices.objects(slice)['root||e0']?.text.includes('changed meanwhile') === true);

    t.true(hasExpired);
    t.is(rig.slices.names(slice).length, 1_200);
    t.is(words(rig, 'begin'), isContinued ? 1 : 2);
    t.is(asked(rig).filter((url) => url.searchParams.has('limit')).length, isContinued ? 4 : 2);
  });
}

test('a shard that was restored from a snapshot is read again once a bookmark reveals it', async (t) => {
  const rig = await anAgent(t, { prepare: ({ store }) => store.put(exports, 'root', named('stays')) });
  await rig.synced();
  const { revision } = rig.shard.store;
  for (const name of ['ghost', 'stays']) rig.shard.store.put(exports, 'root', named(name, 'lost'));
  await until(() => rig.slices.names(slice).length === 2);

  await rig.shard.stop();
  rig.shard.store.restore(revision);
  await rig.shard.restart();
  rig.shard.store.put(exports, 'root', named('new'));
  await until(() => {
    rig.shard.bookmark();
    return rig.slices.names(slice).includes('new');
  });
  await until(() => rig.slices.synced.has(slice));

  t.deepEqual(rig.slices.names(slice), ['new', 'stays']);
  t.false(rig.slices.objects(slice)['root||stays']?.text.includes('lost'));
  t.is(rig.logged.filter(({ event, fields }) => event === 'source.history.lost' && fields['resource'] === 'apiexports').length, 1);
});
