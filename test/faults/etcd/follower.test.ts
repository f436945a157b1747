/**
 * Follows a range of keys in a real etcd while members are killed, frozen, compacted and wiped.
 * Finds a change that the follower loses, repeats, or hands out in the wrong order.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import type { Clock } from '../../../src/domain/ports.js';
import type { EtcdClient } from '../../../src/store/etcd/client.js';
import { Follower, followerOptions, type FollowedBatch } from '../../../src/store/etcd/follower.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { silent } from '../../support/test-store.js';
import type { EtcdMembers } from './etcd-members.js';
import { members, text, bytes } from './with-members.js';

const range = { key: bytes('/x/'), rangeEnd: bytes('/x0') };

/**
 * Opens a follower. `known`: the keys that exist by what it has handed out, with their revisions.
 */
async function follow(
  t: ExecutionContext,
  etcd: EtcdMembers,
  { endpoints = etcd.endpoints, ...options }: Partial<typeof followerOptions & { endpoints: readonly string[] }> = {},
) {
  const client = etcd.client(endpoints, 2_000);
  const batches: FollowedBatch[] = [];
  const known = new Map<string, number>();
  const apply = (batch: FollowedBatch): void => {
    batches.push(batch);
    for (const { kind, kv } of batch.events)
      if (kind === 'put') known.set(text(kv.key), kv.revision);
      else known.delete(text(kv.key));
  };
  const logged: unknown[] = [];
  const log = { ...silent, warn: (event: string, fields?: object) => void logged.push({ event, ...fields }) };
  const parts = { client, clock: systemClock, log, apply, isKept: async () => true };
  const follower = await Follower.open(range, parts, 0, { ...followerOptions, retryMs: 20, ...options });
  follower.begin();
  t.teardown(() => {
    follower.close();
    client.close();
  });
  return {
    follower,
    batches,
    known,
    logged,
    events: () => batches.flatMap(({ events }) => events.map(({ kind, kv }) => `${kind} ${text(kv.key)}@${kv.revision}`)),
  };
}

async function put(client: EtcdClient, key: string, value = ''): Promise<number> {
  return (await client.txn({ compare: [], success: [{ kind: 'put', key: bytes(key), value: bytes(value) }], failure: [] })).revision;
}

async function remove(client: EtcdClient, key: string): Promise<number> {
  return (await client.txn({ compare: [], success: [{ kind: 'delete', key: bytes(key) }], failure: [] })).revision;
}

test('a follower hands out existing keys page by page at one revision, then every change once and in order', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  for (let i = 0; i < 7; i += 1) await put(writer, `/x/${i}`);
  await put(writer, '/y');

  const { follower, batches, known, events } = await follow(t, etcd, { pageKeysMax: 3 });
  t.deepEqual(
    batches.map(({ events: page }) => page.length),
    [3, 3, 1],
  );
  t.is(new Set(batches.map(({ revision }) => revision)).size, 1);
  const [changed, created, deleted] = [await put(writer, '/x/3', 'new'), await put(writer, '/x/9'), await remove(writer, '/x/0')];
  await put(writer, '/y');
  await follower.reachNewest();

  t.deepEqual(events().slice(7), [`put /x/3@${changed}`, `put /x/9@${created}`, `delete /x/0@${deleted}`]);
  t.is(follower.position, deleted + 1);
  t.deepEqual([...known.keys()].toSorted(), ['/x/1', '/x/2', '/x/3', '/x/4', '/x/5', '/x/6', '/x/9']);
  t.is(text(batches.find(({ events: [first] }) => first?.kv.revision === changed)!.events[0]!.previous!.value), '');
  writer.close();
});

test('a follower hands out a revision of many large keys at once, although etcd sends it in pieces', async (t) => {
  const etcd = await members(t, { flags: ['--max-request-bytes=8000000'] });
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  const { follower, batches } = await follow(t, etcd);
  const value = new Uint8Array(200_000);
  const keys = Array.from({ length: 20 }, (_, i) => bytes(`/x/large-${i}`));

  const { revision } = await writer.txn({ compare: [], success: keys.map((key) => ({ kind: 'put', key, value })), failure: [] });
  await follower.reach(revision);

  const changing = batches.filter(({ events }) => events.length > 0);
  t.deepEqual(
    changing.map(({ events }) => events.length),
    [20],
  );
  t.is(changing[0]?.revision, revision);
  writer.close();
});

test('a follower waits for an event that takes longer to arrive than a watch may be silent, and hands it out', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  const endpoints = [`http://127.0.0.1:${network.port}`];
  const { follower, events, logged } = await follow(t, etcd, { endpoints, askMs: 200, silentMs: 1_000, reachMsMax: 5_000 });
  network.narrow(400 * 1024);
  const revision = await put(writer, '/x/large', 'x'.repeat(1_400_000));
  await follower.catchUp(revision);
  t.deepEqual(events(), [`put /x/large@${revision}`]);
  t.true(logged.length > 0, 'the first watch was given up');
  // After that event the follower gives up a silent watch as soon as before.
  const givenUp = logged.length;
  network.stall();
  const beganMs = performance.now();
  await until(() => logged.length > givenUp, 10_000);
  t.true(performance.now() - beganMs < 3_000, `${performance.now() - beganMs} ms`);
  writer.close();
});

test('while members are killed, frozen and started again, a follower hands out every change once and in order', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client(etcd.endpoints, 2_000);
  const { follower, events } = await follow(t, etcd, { askMs: 200, silentMs: 1_000 });
  const written: string[] = [];
  let isDone = false;
  const writing = (async () => {
    for (let i = 0; !isDone; i += 1) {
      const key = `/x/${i % 20}`;
      try {
        written.push(`put ${key}@${await put(writer, key, String(i))}`);
      } catch {
        // etcd may have written it or not.
      }
    }
  })();
  for (const i of [0, 1, 2]) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await (i === 1 ? etcd.freeze(i) : etcd.signal(i, 'SIGKILL'));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    if (i === 1) etcd.thaw(i);
    else etcd.begin(i);
    await etcd.untilReady(i);
  }
  isDone = true;
  await writing;
  await follower.reachNewest();

  const seen = events();
  const revisions = seen.map((event) => Number(event.split('@')[1]));
  t.true(written.length > 100, `${written.length} were written`);
  t.deepEqual(
    revisions,
    revisions.toSorted((a, b) => a - b),
  );
  t.is(new Set(revisions).size, revisions.length);
  t.deepEqual(
    written.filter((event) => !seen.includes(event)),
    [],
  );
  t.log(`${written.length} acknowledged, ${seen.length} seen`);
  writer.close();
});

test('a follower that reconnects at a compacted revision fails, because it cannot know what happened', async (t) => {
  const etcd = await members(t, { members: 1 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  await put(writer, '/x/gone');
  // The follower reconnects only after the delete and the compaction.
  const { follower, logged } = await follow(t, etcd, { retryMs: 4_000 });
  await etcd.signal(0, 'SIGKILL');
  etcd.begin(0);
  await retried(() => remove(writer, '/x/gone'));
  await writer.compact(await put(writer, '/y'));

  t.regex((await follower.failed).message, /etcd has compacted the changes after revision \d+/);
  t.regex(JSON.stringify(logged), /etcd\.watch-ended[^}]*compacted/);
  writer.close();
});

test('a follower fails when etcd has lost what the follower handed out', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  for (let i = 0; i < 5; i += 1) await put(writer, `/x/${i}`);
  const { follower, known } = await follow(t, etcd);

  await etcd.signal(0, 'SIGKILL');
  await etcd.wipe(0);
  etcd.begin(0);

  t.regex((await follower.failed).message, /etcd is at revision \d+, but sent revision \d+ before/);
  t.is(known.size, 5);
  writer.close();
});

test('a follower opened amid writes hands out each revision once, and before it reports to have reached it', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const wrong: string[] = [];
  for (let round = 0; round < 4_000; round += 1) {
    const handedOut: number[] = [];
    let position = 0;
    const apply = ({ revision, events }: FollowedBatch): void => {
      if (position > 0 && revision <= position) wrong.push(`round ${round}: ${position} before ${revision}`);
      position = revision;
      for (const { kv } of events) handedOut.push(kv.revision);
    };
    const follower = await Follower.open(range, { client, clock: systemClock, log: silent, apply, isKept: async () => true }, 0);
    follower.begin();
    const writing = [put(client, '/x/a'), put(client, '/x/a')];
    void follower.reach(follower.position + 1);
    for (const revision of await Promise.all(writing)) {
      await follower.reach(revision);
      if (!handedOut.includes(revision)) wrong.push(`round ${round}: ${revision} was reached and not handed out`);
    }
    follower.close();
  }
  t.deepEqual(wrong, []);
  client.close();
});

test('a closed follower hands out nothing and leaves no timer', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const writer = etcd.client();
  for (let i = 0; i < 30; i += 1) await put(writer, `/x/${i}`);
  const timers = new Set<symbol>();
  const clock: Clock = {
    ...systemClock,
    after: (delayMs, task) => {
      const timer = Symbol('timer');
      timers.add(timer);
      const cancel = systemClock.after(delayMs, () => {
        timers.delete(timer);
        task();
      });
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
  };
  let handedOut = 0;
  const parts = { client: writer, clock, log: silent, apply: () => void (handedOut += 1), isKept: async () => true };
  const follower = await Follower.open(range, parts, 0);
  follower.begin();
  await put(writer, '/x/a');
  await follower.reachNewest();
  const before = handedOut;

  follower.close();
  await put(writer, '/x/b');
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.is(handedOut, before);
  t.is(timers.size, 0);
  writer.close();
});

async function retried<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
