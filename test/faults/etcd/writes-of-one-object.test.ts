/**
 * Writes of one object at two servers of one etcd at once. Finds a 409 for a write that names no
 * resourceVersion.
 */
import { test } from '../../support/test.js';
import type { Answer, KubeClient, KubeObject } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { BalancedServers } from './balanced-servers.js';
import { members } from './with-members.js';

const merge = { 'content-type': 'application/merge-patch+json' };
/** So long because the machine may be busy. */
const timeoutMs = 120_000;
const flags = ['--request-timeout=2m', '--write-timeout=2m'];
const path = aPath({ name: 'one' });

function labelled(client: KubeClient, label: string, value = 'x'): Promise<Answer> {
  return client.raw('PATCH', path, { timeoutMs, headers: merge, body: { metadata: { labels: { [label]: value } } } });
}

function statusesOf(answers: readonly Answer[]): readonly number[] {
  return [...new Set(answers.map(({ status }) => status))].toSorted();
}

for (const http2 of [false, true])
  test(`200 patches of one object at two servers at once are all stored, over HTTP/${http2 ? 2 : 1.1}`, async (t) => {
    const etcd = await members(t);
    if (etcd === undefined) return;
    await using _ = etcd;
    await using servers = await BalancedServers.start(etcd, { flags });
    const clients = servers.servers.map((server) => server.client({ http2 }));
    await clients[0]!.create(aPath(), anApiExport());

    const startedMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 200 }, (__, i) => labelled(clients[i % 2]!, `l${i}`)));

    t.log(`${Math.round(performance.now() - startedMs)} ms`);
    t.deepEqual(statusesOf(answers), [200], answers.find(({ status }) => status !== 200)?.text);
    for (const client of clients) t.is(Object.keys((await client.get(path)).metadata.labels ?? {}).length, 200);
  });

test('a patch or a delete at one server is stored although writers at another server never pause', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using near = await BalancedServers.start(etcd, { count: 1, flags });
  await using far = await BalancedServers.start(etcd, { count: 1, flags });
  const [busy, other] = [near.client(), far.client()];
  const object = await busy.create(aPath(), anApiExport());

  let isOver = false;
  const answered: Answer[] = [];
  const write = async (label: string): Promise<void> => {
    for (let i = 0; !isOver; i += 1) answered.push(await labelled(busy, label, `v${i}`));
  };
  const writers = Promise.allSettled(Array.from({ length: 8 }, (__, i) => write(`w${i}`)));
  t.teardown(() => void (isOver = true));
  const tookMs: number[] = [];
  for (let i = 0; i < 10; i += 1) {
    const startedMs = performance.now();
    const { status, text } = await labelled(other, `o${i}`);
    tookMs.push(Math.round(performance.now() - startedMs));
    t.is(status, 200, text);
    t.is((JSON.parse(text) as KubeObject).metadata.labels?.[`o${i}`], 'x');
  }
  t.log(`each took ${tookMs.join(', ')} ms, among ${answered.length} others`);
  const deleted = await other.raw('DELETE', path, { body: { preconditions: { uid: object.metadata.uid } } });
  isOver = true;
  await writers;

  t.is(deleted.status, 200, deleted.text);
  for (const status of statusesOf(answered)) t.true([200, 404].includes(status), `${status}`);
});
