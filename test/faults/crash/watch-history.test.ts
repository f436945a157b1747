/**
 * Watches of every kind on a server while objects are created, changed, relabelled and deleted, and
 * while the server is stopped and killed. Finds an event or a list that breaks a guarantee of
 * docs/guarantees.md (G2–G8).
 */
import { test } from '../../support/test.js';
import { KubeError, type KubeClient, type KubeObject } from '../../support/kube-client.js';
import { isForeign, StrataProcess } from '../../support/strata-process.js';
import { validate } from '../../support/validators.js';
import { positionOf, seenList, truthOf, WatchRecorder, type Covered, type SeenWatch } from '../../support/watch-history.js';

const exports = '/apis/apis.kcp.io/v1alpha2/apiexports';
const everywhere = `/services/cache/shards/*/clusters/*${exports}`;
const everything: Covered = { covers: () => true };
const gold: Covered = { covers: () => true, selects: ({ labels }) => labels['tier'] === 'gold' };
const amber: Covered = { covers: (key) => key.startsWith('amber|') };
const goldOnly = { labelSelector: 'tier=gold' };
const watchList = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };

test('what clients see of a server through a stop and a kill keeps every guarantee', async (t) => {
  t.timeout(120_000);
  await using server = await StrataProcess.start();
  const client = server.client();
  const empty = await client.list(everywhere);
  const begun = { kind: 'behind', position: positionOf(empty) } as const;
  const seen: SeenWatch[] = [];
  let full = new WatchRecorder(client, {
    id: 'full 0',
    path: everywhere,
    began: begun,
    covered: everything,
    options: { query: { resourceVersion: String(begun.position) } },
  });

  await lifeOfObjects(client, 'first');
  const list = await client.list(everywhere);
  const behindList = { kind: 'behind', position: positionOf(list) } as const;
  const from = { resourceVersion: String(behindList.position), allowWatchBookmarks: 'true' };
  const watchers = (round: number): readonly WatchRecorder[] => [
    new WatchRecorder(client, {
      id: `behind the list ${round}`,
      path: everywhere,
      began: behindList,
      covered: everything,
      options: { query: from },
    }),
    new WatchRecorder(client, {
      id: `gold ${round}`,
      path: everywhere,
      began: behindList,
      covered: gold,
      options: { query: { ...from, ...goldOnly } },
    }),
    new WatchRecorder(client, {
      id: `amber ${round}`,
      path: `/services/cache/shards/amber/clusters/*${exports}`,
      began: behindList,
      covered: amber,
      options: { query: from },
    }),
    new WatchRecorder(client, {
      id: `watch-list ${round}`,
      path: everywhere,
      began: { kind: 'initial' },
      covered: everything,
      options: { query: watchList },
    }),
    new WatchRecorder(client, {
      id: `gold watch-list ${round}`,
      path: everywhere,
      began: { kind: 'initial' },
      covered: gold,
      options: { query: { ...watchList, ...goldOnly } },
    }),
  ];

  for (const [round, signal] of (['SIGTERM', 'SIGKILL'] as const).entries()) {
    const open = watchers(round);
    for (const recorder of open.slice(3)) await recorder.until((event) => event.initialEventsEnd);
    const last = await lifeOfObjects(client, `round-${round}`);
    await Promise.all([full, open[0]!, open[3]!].map((recorder) => recorder.until((event) => event.position >= positionOf(last))));
    for (const recorder of [...open, full]) seen.push(await recorder.close());

    await server.restart(signal);
    const began = { kind: 'behind', position: full.position } as const;
    full = new WatchRecorder(client, {
      id: `full ${round + 1}`,
      path: everywhere,
      began,
      covered: everything,
      resumes: full.id,
      options: { query: { resourceVersion: String(began.position) } },
    });
  }
  const last = await lifeOfObjects(client, 'last');
  await full.until((event) => event.position >= positionOf(last));
  seen.push(await full.close());

  // A watch-list that names the list's revision also receives what was deleted since then.
  const named = { kind: 'initial', named: positionOf(list) } as const;
  const healed = new WatchRecorder(client, {
    id: 'healed',
    path: everywhere,
    began: named,
    covered: everything,
    options: { query: { ...watchList, ...from } },
  });
  await healed.until((event) => event.initialEventsEnd);
  if (!isForeign) await healed.until(({ type, key }) => type === 'DELETED' && key === 'cedar|beta||last-2');
  seen.push(await healed.close());

  const story = seen.filter(({ id }) => id.startsWith('full')).flatMap(({ events }) => events);
  const violations = validate({ truth: truthOf(story), watches: seen, lists: [seenList('list', list, everything, 'behind the list 0')] });
  t.deepEqual(violations, []);
  t.true(story.length > 50);
});

test('a refused request is an error that has its status and reason', async (t) => {
  await using server = await StrataProcess.start();

  const error = await t.throwsAsync(server.client().get(`/services/cache/shards/amber/clusters/acme${exports}/missing`), {
    instanceOf: KubeError,
  });

  t.is(error.status, 404);
  t.is(error.reason, 'NotFound');
});

test('over HTTP/2 a client gets the same answers and the same events', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client({ http2: true });
  const begun = { kind: 'behind', position: positionOf(await client.list(everywhere)) } as const;
  const recorder = new WatchRecorder(client, {
    id: 'http2',
    path: everywhere,
    began: begun,
    covered: everything,
    options: { query: { resourceVersion: String(begun.position) } },
  });

  const last = await lifeOfObjects(client, 'http2');
  await recorder.until((event) => event.position >= positionOf(last));
  const watch = await recorder.close();

  t.deepEqual(validate({ truth: truthOf(watch.events), watches: [watch], lists: [] }), []);
});

/**
 * Creates, changes and relabels objects in three places, and deletes some. Resolves with the last
 * one that was written.
 */
async function lifeOfObjects(client: KubeClient, prefix: string): Promise<KubeObject> {
  let last: KubeObject | undefined;
  for (const [shard, cluster] of [
    ['amber', 'acme'],
    ['birch', 'acme'],
    ['cedar', 'beta'],
  ] as const) {
    const path = `/services/cache/shards/${shard}/clusters/${cluster}${exports}`;
    for (const [index, tier] of ['gold', 'tin', 'gold'].entries()) await client.create(path, apiExport(`${prefix}-${index}`, { tier }));
    for (const tier of ['tin', 'gold', 'gold', 'tin']) await client.mergePatch(`${path}/${prefix}-0`, { metadata: { labels: { tier } } });
    await client.mergePatch(`${path}/${prefix}-1`, { spec: { n: 2 } });
    await client.delete(`${path}/${prefix}-2`);
    last = await client.create(path, apiExport(`${prefix}-last`, {}));
  }
  return last!;
}

function apiExport(name: string, labels: Readonly<Record<string, string>>): unknown {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name, labels }, spec: { n: 1 } };
}
