import { processorMs } from '../../support/fastest.js';
import { test } from '../../support/test.js';
import { ShardUrls } from '../../../src/proxy/shard-urls.js';
import { aBody, aKey, shardName } from '../../support/objects.js';

async function urlOf(baseURL: unknown): Promise<string | undefined> {
  const key = aKey({ shard: 'root', cluster: 'root', group: 'core.kcp.io', resource: 'shards', name: 'amber' });
  const shard = { key, body: aBody(key, { spec: { baseURL } }), revision: 1, resourceVersion: '1' };
  const urls = new ShardUrls({
    revisions: { published: 1 as never },
    objects: { find: async ({ cluster }) => (cluster === 'root' ? [shard as never] : []) },
  });
  const place = await urls.of(shardName('amber'));
  return place && `${place.origin}${place.path}`;
}

test('a shard has the URL that its Shard names, and none if that is no plain https URL', async (t) => {
  for (const [baseURL, expected] of [
    ['https://amber:6443', 'https://amber:6443'],
    ['https://amber:443/', 'https://amber'],
    ['https://amber/base/', 'https://amber/base'],
    ['http://amber', undefined],
    ['https://amber:pw@evil.example.com', undefined],
    ['https://amber?x=/', undefined],
    ['https://amber/#', 'https://amber'],
    ['https://amber/#x', undefined],
    ['https://', undefined],
    ['', undefined],
    [7, undefined],
    [undefined, undefined],
  ] as const)
    t.is(await urlOf(baseURL), expected, String(baseURL));
});

test('a Shard whose URL has 60,000 slashes is read quickly', async (t) => {
  const path = `${'/'.repeat(60_000)}x`;
  const beganMs = processorMs();

  t.is(await urlOf(`https://amber${path}`), `https://amber${path}`);
  t.is(await urlOf(`https://amber/${'/'.repeat(60_000)}`), 'https://amber');
  t.true(processorMs() - beganMs < 1_000);
});
