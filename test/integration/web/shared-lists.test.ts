/**
 * What concurrent lists and WatchLists share. The tests would find a list that lacks a write that
 * was answered before it.
 */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { KubeClient, KubeList } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { metricOf } from '../../support/process-figures.js';
import { aServer } from '../../support/test-server.js';

const everywhere = aPath({ shard: '*', cluster: '*' });
const shards = aPath({ group: 'core.kcp.io', version: 'v1alpha1', resource: 'shards' });

/** Creates more objects than fit into a page. */
async function fill(client: KubeClient): Promise<void> {
  const spec = { text: 'x'.repeat(3_000) };
  await Promise.all(Array.from({ length: 120 }, (_, i) => client.create(aPath(), anApiExport({ name: `n${i}` }, { spec }))));
}

async function shared(client: KubeClient): Promise<number> {
  return (await metricOf(client, 'strata_list_chunks_shared_total')) ?? 0;
}

function revisionOf({ metadata }: KubeList): string {
  return metadata.resourceVersion ?? '';
}

test('a list after a write to another type has the new revision and the same pages', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client);
  await client.list(everywhere);
  const first = await client.list(everywhere);
  const before = await shared(client);

  const written = await client.create(shards, { apiVersion: 'core.kcp.io/v1alpha1', kind: 'Shard', metadata: { name: 'amber' } });
  const second = await client.list(everywhere);

  t.true((await shared(client)) > before);
  t.deepEqual(second.items, first.items);
  t.is(revisionOf(second), written.metadata.resourceVersion ?? 'none');
});

test('a list shows every write that was answered before it was requested, while others list and write the same type', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client);
  let isOver = false;
  const others = [1, 2, 3].map(async (other) => {
    for (let i = 0; !isOver; i += 1) {
      const [written] = await Promise.all([client.create(aPath(), anApiExport({ name: `by-${other}-${i}` })), client.list(everywhere)]);
      t.truthy(written);
    }
  });

  for (let i = 0; i < rounds(25); i += 1) {
    const written = await client.create(aPath(), anApiExport({ name: `own-${i}` }));
    const { items, metadata } = await client.list(everywhere);
    t.is(items.find(({ metadata: { name } }) => name === `own-${i}`)?.metadata.resourceVersion, written.metadata.resourceVersion);
    t.true(BigInt(metadata.resourceVersion ?? 0) >= BigInt(written.metadata.resourceVersion ?? 0));
    t.true(items.every((item) => BigInt(item.metadata.resourceVersion ?? 0) <= BigInt(metadata.resourceVersion ?? 0)));
    await client.delete(aPath({ name: `own-${i}` }));
    t.false((await client.list(everywhere)).items.some((item) => item.metadata.name === `own-${i}`));
  }
  isOver = true;
  await Promise.all(others);
});
