/**
 * A range delete, a transaction of many puts, or the end of a lease has one revision in etcd. Finds
 * a watch that gets only a part of such a revision and no 410, over HTTP/1.1 or HTTP/2.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { seeded } from '../../support/crash/random.js';
import { aPath } from '../../support/objects.js';
import { aServer, until } from '../../support/test-server.js';
import { validate } from '../../support/validators.js';
import { WatchRecorder, type Began, type Covered, type SeenWatch } from '../../support/watch-history.js';
import { prefix } from './open-stores.js';
import { OtherWriter, type Written } from './other-writer.js';
import { members } from './with-members.js';

const everything = aPath({ shard: '*', cluster: '*' });
type View = Readonly<{ cluster: string; selector?: string }> & Covered;
const all: View = { cluster: '*', covers: () => true };
const gold: View = { ...all, selector: 'tier=gold', selects: ({ labels }) => labels['tier'] === 'gold' };
const inCluster = (cluster: string): View => ({ cluster, covers: (key) => key.split('|')[1] === cluster });
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);

/** A server on etcd, and another client that writes there. */
async function opened(t: ExecutionContext, http2: boolean, flags: Readonly<Record<string, string>> = {}) {
  const etcd = await members(t, { flags: ['--max-txn-ops=20000', '--max-request-bytes=33554432'] });
  if (etcd === undefined) return undefined;
  t.teardown(() => etcd[Symbol.asyncDispose]());
  const writer = new OtherWriter(etcd, prefix);
  t.teardown(() => writer.close());
  // One object, so that a list has a revision.
  await writer.put([{ place: { name: 'first' } }]);
  const server = await aServer(t, { flags: { 'etcd-servers': etcd.endpoints.join(','), 'etcd-prefix': prefix, ...flags } });
  let ids = 0;
  const watch = ({ cluster, selector, ...covered }: View, position: bigint, resumes?: string): WatchRecorder => {
    const began: Began = { kind: 'behind', position };
    const selecting = selector === undefined ? {} : { labelSelector: selector };
    const query = { resourceVersion: String(position), allowWatchBookmarks: 'true', ...selecting };
    const path = aPath({ shard: '*', cluster });
    const resumed = resumes === undefined ? {} : { resumes };
    const recorder = new WatchRecorder(server.client({ http2 }), {
      id: `${(ids += 1)}`,
      path,
      began,
      covered,
      options: { query },
      ...resumed,
    });
    t.teardown(() => recorder.close());
    return recorder;
  };
  return { writer, watch, client: server.client({ http2 }) };
}

function many(number: number, cluster = 'acme', bytes = 10): readonly Written[] {
  return Array.from({ length: number }, (_, i) => ({
    place: { cluster, name: `n${i}` },
    labels: { tier: i % 2 === 0 ? 'gold' : 'tin' },
    spec: { text: 'x'.repeat(bytes) },
  }));
}

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test(`whatever other clients do at one revision, every watch gets all of it, over ${over}`, async (t) => {
    const open = await opened(t, http2);
    if (open === undefined) return;
    const { writer, watch } = open;
    const start = writer.truth[0]!.position;
    const recorders = [all, gold, inCluster('acme'), inCluster('beta')].map((covered) => watch(covered, start));
    await Promise.all(recorders.map(({ opened: isOpen }) => isOpen));

    await writer.put(many(600));
    await writer.put([...many(30, 'beta', 60_000), ...many(30, 'acme', 60_000)]);
    await writer.removeAll({ shard: 'amber', cluster: 'acme' });
    await writer.grantLease(7);
    await writer.put(many(300), 7);
    const gone = await writer.endLease(7, (key) => key.includes('|acme|'));
    const end = await writer.put(['acme', 'beta'].map((cluster) => ({ place: { cluster, name: 'end' }, labels: { tier: 'gold' } })));
    await Promise.all(recorders.map((each) => each.until(({ position }) => position === end)));
    // A client that was cut off within the revision of the lease's end resumes at that revision.
    recorders.push(watch(all, gone), watch(gold, gone), watch(inCluster('acme'), gone));
    await Promise.all(recorders.map((each) => each.until(({ position }) => position === end)));

    const watches = await Promise.all(recorders.map((each) => each.close()));
    t.deepEqual(validate({ truth: writer.truth, watches, lists: [] }).slice(0, 3), []);
  });

  test(`a revision that is too large to be sent ends the watches that it concerns with one 410, over ${over}`, async (t) => {
    const open = await opened(t, http2);
    if (open === undefined) return;
    const { writer, watch, client } = open;
    await writer.put([...many(6_000), ...many(3, 'beta')]);
    await writer.put([{ place: { name: 'last' } }]);
    const listed = (await client.list(everything)).metadata.resourceVersion;
    const start = BigInt(listed ?? 0);
    const [concerned, others] = [watch(all, start), watch(inCluster('beta'), start)];
    await Promise.all([concerned.opened, others.opened]);

    const gone = await writer.removeAll({ shard: 'amber', cluster: 'acme' });
    await concerned.ended();
    t.is(concerned.events.at(-1)?.code, 410);
    const list = await client.list(everything);
    t.is(list.items.length, 3);
    // Nothing has changed since, so the list names the revision that could not be sent.
    t.is(BigInt(list.metadata.resourceVersion ?? 0), gone);
    const next = watch(all, gone);
    await next.opened;
    const end = await writer.put([{ place: { cluster: 'beta', name: 'n1' } }]);

    await Promise.all([next, others].map((each) => each.until(({ position }) => position === end)));
    t.deepEqual(
      [...next.events, ...others.events].filter(({ type }) => type !== 'BOOKMARK').map(({ type, key }) => `${type} ${key}`),
      ['MODIFIED amber|beta||n1', 'MODIFIED amber|beta||n1'],
    );
  });

  test(`a client that has got a part of a revision gets 410 once the rest is compacted, over ${over}`, async (t) => {
    const open = await opened(t, http2, { 'etcd-history-age': '10s' });
    if (open === undefined) return;
    const { writer, client } = open;
    await writer.put(many(600));
    const gone = await writer.removeAll({ shard: 'amber', cluster: 'acme' });
    await until(async () => (await client.list(everything)).items.length === 0);
    const first = async (): Promise<string> => {
      const { text } = await client.raw('GET', `${everything}?watch=true&timeoutSeconds=1&resourceVersion=${gone}`);
      return text.split('\n', 1)[0] ?? '';
    };
    let seen = await first();
    t.regex(seen, /^\{"type":"DELETED"/);
    await until(async () => !(seen = await first()).startsWith('{"type":"DELETED"'), 60_000);
    t.regex(seen, /^\{"type":"ERROR","object":\{.*"code":410/);
    const { resourceVersion } = (await client.list(everything)).metadata;
    t.true(BigInt(resourceVersion ?? 0) > gone, 'a new list names a later revision, so no client resumes at that one');
  });

  test(`revisions of 1 to 5,000 changes reach watches that read slowly, are cut off and go on, over ${over}`, async (t) => {
    const open = await opened(t, http2);
    if (open === undefined) return;
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed + Number(http2));
    const startedMs = performance.now();
    const { writer, watch } = open;
    const kinds = [all, gold, inCluster('acme')];
    const live = kinds.map((covered) => watch(covered, writer.truth[0]!.position));
    const done: SeenWatch[] = [];

    for (let round = 0; round < 10; round += 1) {
      const size = [1, 2, 300, 1_000, 5_000][random.below(5)]!;
      const cluster = random.chance(0.7) ? 'acme' : 'beta';
      if (random.chance(0.5)) await writer.put(many(1 + random.below(size), cluster, random.below(1_000)));
      else if ([...writer.held].some((key) => key.includes(`|${cluster}|`))) await writer.removeAll({ shard: 'amber', cluster });
      const i = random.below(kinds.length);
      if (random.chance(0.4)) live[i]!.pause();
      else live[i]!.resume();
      if (random.chance(0.6)) continue;
      // The client has not received the last events that the server sent.
      const cut = await live[i]!.close();
      const events = cut.events.slice(0, cut.events.length - random.below(cut.events.length + 1));
      const began = cut.began.kind === 'behind' ? cut.began.position : 0n;
      done.push({ ...cut, events, isCut: true });
      live[i] = watch(kinds[i]!, events.at(-1)?.position ?? began, cut.id);
    }
    const end = await writer.put([{ place: { name: 'end' }, labels: { tier: 'gold' } }]);
    t.log(`written after ${Math.round(performance.now() - startedMs)} ms`);
    for (const each of live) each.resume();
    await Promise.all(live.map((each) => each.until(({ position }) => position === end, 60_000)));

    t.log(`read after ${Math.round(performance.now() - startedMs)} ms`);
    const watches = [...done, ...(await Promise.all(live.map((each) => each.close())))];
    t.deepEqual(watches.flatMap(({ events }) => events.filter(({ type }) => type === 'ERROR')), []); // prettier-ignore
    t.deepEqual(validate({ truth: writer.truth, watches, lists: [] }).slice(0, 3), []);
  });
}
