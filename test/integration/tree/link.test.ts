import { test } from '../../support/test.js';
import { byeReasons, type ByeReason } from '../../../src/frames/bye.js';
import { UpgradeRefused } from '../../../src/frames/upgrade-refused.js';
import { firstAttempt, reconnect, type Attempt, type Parting } from '../../../src/sender/reconnect.js';
import { linkReconnectBounds } from '../../../src/tree/links/link.js';
import { fractions, streamOf } from '../../simulation/seeded-random.js';
import type { ConnectionEnd } from './connection-pair.js';
import { aWelcome, byesOf, TreeRig } from './tree-rig.js';

/**
 * A parent at `url` that sends what the test wants; returns its ends of connections, in order of
 * arrival.
 */
function aParent(
  rig: TreeRig,
  url: string,
  greet: (end: ConnectionEnd) => void = (end) => end.send(aWelcome(`id-of-${url}`)),
): ConnectionEnd[] {
  const ends: ConnectionEnd[] = [];
  rig.listen(url, (end) => {
    ends.push(end);
    greet(end);
  });
  return ends;
}

test('a link sends hello, and is open once it gets a welcome', async (t) => {
  const rig = new TreeRig();
  aParent(rig, 'root');
  const east = await rig.cache('east', { urls: ['root'] });

  await rig.settle();

  t.like(rig.connections[0]?.[0].sent[0], { kind: 'hello', role: 'cache', name: 'east', term: 1_000, route: [east.store.cacheId] });
  t.like(east.tree.parent, { kind: 'open', url: 'root', cacheId: 'id-of-root' });
  east.stop();
});

test('a link reconnects whatever the parent sends; after a final refusal, only after a long wait', async (t) => {
  const soonest: Readonly<Record<ByeReason, 'soon' | 'later'>> = {
    shutdown: 'soon',
    replaced: 'soon',
    protocol: 'soon',
    unavailable: 'soon',
    timeout: 'soon',
    fenced: 'later',
    forbidden: 'later',
    unsupported: 'later',
    loop: 'later',
  };
  for (const reason of Object.keys(byeReasons) as ByeReason[]) {
    const rig = new TreeRig();
    const ends = aParent(rig, 'root');
    const east = await rig.cache('east', { urls: ['root'] });
    await rig.settle();

    ends[0]?.close(reason, `because ${reason}`);
    await rig.settle();
    t.is(east.tree.parent?.kind, 'connecting', reason);
    await rig.advance(1_000);
    t.is(rig.tried.length, soonest[reason] === 'soon' ? 2 : 1, reason);
    await rig.advance(30_000);

    t.is(rig.tried.length, 2, reason);
    t.is(east.tree.parent?.kind, 'open', reason);
    east.stop();
  }
});

test('a link waits as long as the parent asks', async (t) => {
  const rig = new TreeRig();
  const ends = aParent(rig, 'root');
  const east = await rig.cache('east', { urls: ['root'] });
  await rig.settle();

  ends[0]?.close('forbidden', 'not now', 7_000);
  await rig.advance(6_999);
  t.is(rig.tried.length, 1);
  await rig.advance(2);

  t.is(rig.tried.length, 2);
  east.stop();
});

test('parents are tried in turn; one whose connection had lasted is tried again first', async (t) => {
  const rig = new TreeRig();
  const east = await rig.cache('east', { urls: ['one', 'two', 'three'] });
  for (let i = 0; i < 3; i++) await rig.advance(1_000);
  t.deepEqual(rig.tried.slice(0, 4), ['one', 'two', 'three', 'one']);

  const ends = aParent(rig, 'two');
  for (let i = 0; i < 20 && ends.length === 0; i++) await rig.advance(30_000);
  await rig.advance(60_000);
  const before = rig.tried.length;
  ends[0]?.terminate();
  await rig.advance(1_000);

  t.is(rig.tried[before], 'two');
  t.is(ends.length, 2);
  east.stop();
});

test('a link gives up a parent that does not answer in time', async (t) => {
  const rig = new TreeRig();
  const ends = aParent(rig, 'root', () => {});
  const east = await rig.cache('east', { urls: ['root'], welcomeTimeoutMs: 10_000 });
  await rig.advance(9_999);
  t.true(ends[0]?.isOpen);

  await rig.advance(1);

  t.false(ends[0]?.isOpen);
  t.deepEqual(byesOf(rig.connections[0]?.[0] ?? raise()), ['timeout']);
  await rig.advance(1_000);
  t.is(rig.tried.length, 2);
  east.stop();
});

test('an answer that is not a welcome counts as no parent', async (t) => {
  const greetings: readonly ((end: ConnectionEnd) => void)[] = [
    (end) => end.send({ kind: 'route', route: [] }),
    (end) => end.send(aWelcome('id-of-root', { protocol: 2 })),
    (end) => end.terminate(),
    (end) => end.close('unsupported', 'no caches here'),
  ];
  for (const greet of greetings) {
    const rig = new TreeRig();
    aParent(rig, 'root', greet);
    const east = await rig.cache('east', { urls: ['root'] });

    await rig.settle();

    t.false(rig.connections[0]?.[0].isOpen);
    t.not(east.tree.parent?.kind, 'open');
    east.stop();
  }
});

test('an upgrade that is refused for good is tried again after a long wait', async (t) => {
  const rig = new TreeRig();
  rig.refusals.set('root', new UpgradeRefused(403, 'forbidden', { reason: 'Forbidden' }));
  const east = await rig.cache('east', { urls: ['root'] });

  await rig.advance(29_000);
  t.is(rig.tried.length, 1);
  await rig.advance(2_000);

  t.is(rig.tried.length, 2);
  east.stop();
});

test('a cache that is its own parent closes the link and logs it', async (t) => {
  const rig = new TreeRig();
  const east = await rig.cache('east', { urls: ['east'] });

  await rig.settle();

  t.not(east.tree.parent?.kind, 'open');
  t.true(rig.connections[0]?.flatMap((end) => byesOf(end)).includes('loop'));
  t.regex(east.tree.parent?.kind === 'connecting' ? east.tree.parent.message : '', /itself/);
  east.stop();
});

test('a cache leaves a parent that becomes its descendant', async (t) => {
  const rig = new TreeRig();
  const ends = aParent(rig, 'root');
  const east = await rig.cache('east', { urls: ['root'] });
  await rig.settle();

  ends[0]?.send({ kind: 'route', route: ['id-of-root', 'id-of-top'] });
  await rig.settle();
  t.deepEqual(east.tree.route, [east.store.cacheId, 'id-of-root', 'id-of-top']);
  ends[0]?.send({ kind: 'route', route: ['id-of-root', east.store.cacheId] });
  await rig.settle();

  t.deepEqual(byesOf(rig.connections[0]?.[0] ?? raise()), ['loop']);
  await rig.advance(29_000);
  t.is(rig.tried.length, 1);
  east.stop();
});

test('a cache that stops sends its parent a bye and does not reconnect', async (t) => {
  const rig = new TreeRig();
  const ends = aParent(rig, 'root');
  const east = await rig.cache('east', { urls: ['root'] });
  await rig.settle();

  east.stop();
  await rig.advance(60_000);

  t.false(ends[0]?.isOpen);
  t.deepEqual(byesOf(rig.connections[0]?.[0] ?? raise()), ['shutdown']);
  t.is(rig.tried.length, 1);
});

function raise(): never {
  throw new Error('there was no connection');
}

/**
 * Times at which each of a thousand children reconnects, in ms since all lost their parent at once;
 * the parent accepts nobody before `backMs`.
 */
function comingBack(backMs: number): readonly number[] {
  const random = fractions(streamOf(7, 'children'));
  return Array.from({ length: 1_000 }, () => {
    const decide = (attempt: Attempt, parting: Parting) => reconnect(attempt, parting, { urls: 1, random, bounds: linkReconnectBounds });
    const refused: Parting = { lastedMs: 0, reason: undefined, message: '', retryAfterMs: undefined };
    let atMs = 0;
    let next = decide(firstAttempt, { ...refused, lastedMs: 3_600_000, reason: 'shutdown', retryAfterMs: 0 });
    for (; next.kind === 'connect'; next = decide(next.attempt, refused)) {
      atMs += next.afterMs;
      if (atMs >= backMs) return atMs;
    }
    return Infinity;
  }).toSorted((a, b) => a - b);
}

test('children that lose their parent together reconnect spread over seconds; after a short break, all are back within one', (t) => {
  const windowMs = 200;
  for (const [backMs, lastMs] of [
    [0, 1_000],
    [1_500, 3_500],
    [60_000, 62_000],
  ] as const) {
    const times = comingBack(backMs);
    const most = Math.max(...times.map((from, i) => times.slice(i).findIndex((at) => at > from + windowMs)));

    t.true(most <= 250, `${most} within ${windowMs} ms, back after ${backMs}`);
    t.true((times.at(-1) ?? Infinity) <= lastMs, `the last at ${times.at(-1)}`);
  }
});
