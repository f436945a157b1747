import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aServer } from '../../support/test-server.js';

/**
 * Created after the bookmark: once this object arrives, so has everything about older revisions.
 */
const last = 'zz-last';

async function watchList(client: KubeClient, path: string, query: Record<string, string>): Promise<readonly string[]> {
  const received: string[] = [];
  const all = { allowWatchBookmarks: 'true', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', ...query };
  for await (const { type, object } of client.watch(path, { query: all })) {
    const { name = '', annotations = {} } = object.metadata;
    if (name === last) return received;
    const endsInitialEvents = annotations['k8s.io/initial-events-end'] === 'true';
    if (type !== 'BOOKMARK' || endsInitialEvents)
      received.push(
        `${type} ${name}${type === 'DELETED' ? ` ${annotations['kcp.io/shard']}/${annotations['kcp.io/cluster']}` : ''}`.trim(),
      );
    if (endsInitialEvents) await client.create(aPath(), anApiExport({ name: last, labels: { team: 'red' } }));
  }
  throw new Error(`the watch ended before ${last}`);
}

test('after the bookmark the watch sends what was deleted since, but not what was recreated or exists on another shard', async (t) => {
  const client = (await aServer(t)).client();
  for (const name of ['stays', 'gone', 'again', 'moves']) await client.create(aPath(), anApiExport({ name }));
  const { resourceVersion = '' } = (await client.list(aPath())).metadata;
  await client.delete(aPath({ name: 'gone' }));
  await client.delete(aPath({ name: 'again' }));
  await client.create(aPath(), anApiExport({ name: 'again' }));
  await client.create(aPath({ shard: 'birch' }), anApiExport({ name: 'moves' }));
  await client.delete(aPath({ name: 'moves' }));

  const received = await watchList(client, aPath({ shard: '*', cluster: '*' }), { resourceVersion });

  t.deepEqual(received, ['ADDED again', 'ADDED stays', 'ADDED moves', 'BOOKMARK', 'DELETED gone amber/acme']);
});

test('a watch with a selector also sends what no longer matches the selector', async (t) => {
  const client = (await aServer(t)).client();
  for (const name of ['stays', 'leaves', 'gone']) await client.create(aPath(), anApiExport({ name, labels: { team: 'red' } }));
  const { resourceVersion = '' } = (await client.list(aPath())).metadata;
  await client.mergePatch(aPath({ name: 'leaves' }), { metadata: { labels: { team: 'blue' } } });
  await client.delete(aPath({ name: 'gone' }));
  await client.mergePatch(aPath({ name: 'stays' }), { spec: { changed: true } });

  const received = await watchList(client, aPath({ shard: '*', cluster: '*' }), { resourceVersion, labelSelector: 'team=red' });

  t.deepEqual([...received].sort(), ['ADDED stays', 'BOOKMARK', 'DELETED gone amber/acme', 'DELETED leaves amber/acme']);
});

largeTest('in a large logical cluster no changed object is reported as deleted while others keep changing', async (t) => {
  // HTTP/2, because over HTTP/1.1 six hundred concurrent writes need as many connections, which a
  // busy machine does not open in time.
  const client = (await aServer(t)).client({ http2: true });
  const names = Array.from({ length: 600 }, (_, i) => `n${String(i).padStart(3, '0')}`);
  await Promise.all(names.map((name) => client.create(aPath(), anApiExport({ name }))));
  const { resourceVersion = '' } = (await client.list(aPath())).metadata;
  await Promise.all(names.slice(500).map((name) => client.mergePatch(aPath({ name }), { spec: { changed: true } })));
  await client.delete(aPath({ name: 'n599' }));

  const [received] = await Promise.all([
    watchList(client, aPath({ shard: '*', cluster: '*' }), { resourceVersion }),
    Promise.all(names.slice(0, 50).map((name) => client.mergePatch(aPath({ name }), { spec: { changed: true } }))),
  ]);

  t.deepEqual(
    received.filter((event) => event.startsWith('DELETED')),
    ['DELETED n599 amber/acme'],
  );
  t.is(received.filter((event) => event.startsWith('ADDED')).length, 599);
});
