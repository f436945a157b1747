import { setImmediate } from 'node:timers';
import { test } from '../../support/test.js';
import { inBuckets, noBuckets } from '../../../src/domain/slices/buckets.js';
import type { LinkPolicy } from '../../../src/domain/link-policy.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { Frame } from '../../../src/frames/frame.js';
import { PeerInventory } from '../../../src/tree/links/inventory.js';
import { SliceSyncs } from '../../../src/tree/syncs/slice-syncs.js';
import { LinkFilter } from '../../../src/tree/filters/link-filter.js';
import { LinkSenderQueue } from '../../../src/tree/links/link-sender-queue.js';
import type { SliceSync } from '../../../src/tree/syncs/slice-sync.js';
import { SliceSender } from '../../../src/tree/syncs/slice-sender.js';
import { snapshotPages } from '../../../src/domain/snapshot-pages.js';
import { Summary } from '../../../src/domain/slices/summary.js';
import { Tail } from '../../../src/tree/links/tail.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy } from '../../support/link-rules.js';
import { MemoryDisk } from '../../support/store/memory-disk.js';
import { aClaim, aFullSync, aSlice, mustPush, firstTerm } from '../../support/pushes.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';
import { aKey, aScope } from '../../support/objects.js';
import { anUpsert } from './an-upsert.js';

const everything = aPolicy({ types: ['*'] });
const page = { rowsMax: 1, bytesMax: 1_000_000 };

/** A sender over a store with these objects of one slice, one object per page. */
async function aSliceSender(...names: readonly string[]) {
  return aFilteringSender(everything, names);
}

/** The same, over a link whose policy filters objects. */
async function aFilteringSender(policy: LinkPolicy, names: readonly string[]) {
  const clock = new ManualClock();
  const parts = { clock, soon: (task: () => void) => void setImmediate(task), random: () => 0.5 };
  const store = MemoryDisk.blank(() => 0.5).open(parts, { snapshot: page });
  await mustPush(store.writer.lane(), [
    aClaim(),
    ...aFullSync(
      {},
      names.map((name) => anUpsert(name)),
    ),
  ]);
  const known = store.state;
  const credit = { mutations: 10_000, bytes: 10_000_000 };
  const limits = { frameBytesMax: 1_000_000, frameMutationsMax: 100, bodyBytesMax: 100_000 };
  const queue = new LinkSenderQueue(
    { clock, tooLarge: () => {} },
    { credit, limits },
    { batchMutationsMax: 100, batchBytesMax: 1_000_000 },
  );
  const notify = (): void => {};
  const syncs = new SliceSyncs(
    {
      known,
      isSynced: (slice) => known.isSynced(slice),
      canArrive: () => true,
      unknown: () => {},
      published: () => store.revisions.published,
      clock,
      random: () => 0,
      notify,
    },
    { to: 'parent', filter: new LinkFilter(policy, everything), held: new PeerInventory(), canResume: false },
  );
  const tail = new Tail(
    { history: store.history, revisions: store.revisions, commits: store.commits, isWanted: () => true, notify },
    store.revisions.published,
  );
  await syncs.learnChoice(aClaimFrame({ term: firstTerm, origin: store.cacheId, isYours: true }), async () => {});
  await syncs.open(async () => {});
  const resynced: string[] = [];
  const resync = (sync: SliceSync, afterMs: number, reason: string): void => {
    resynced.push(reason);
    syncs.makeDue(sync, afterMs);
  };
  const sliceSender = new SliceSender({ store, queue, syncs, tail, progress: () => {}, resync });
  const sent = (): readonly string[] => {
    const frames: Frame[] = [];
    for (let frame = queue.take(); frame !== undefined; frame = queue.take()) frames.push(frame);
    return frames.map((frame) => (frame.kind === 'put' ? `put ${frame.objects.map(({ name }) => name).join()}` : frame.kind));
  };
  const acknowledge = (sequence: number): boolean => queue.acknowledge(sequence, credit);
  return { sliceSender, syncs, clock, sent, acknowledge, queue, store, known, tail, resynced };
}

test('a slice is sent from begin to end, one page a turn, and its digest follows once everything is acknowledged', async (t) => {
  const { sliceSender, sent, acknowledge } = await aSliceSender('one', 'two');

  t.true(await sliceSender.walk());
  t.deepEqual(sent(), ['begin', 'put one']);
  t.false(sliceSender.end());
  t.true(await sliceSender.walk());
  t.deepEqual(sent(), ['put two']);
  // A full page may not be the last.
  t.false(sliceSender.end());
  t.true(await sliceSender.walk());
  t.true(sliceSender.end());
  t.deepEqual(sent(), ['end']);
  t.false(sliceSender.digest());
  acknowledge(4);
  t.true(sliceSender.digest());
  t.deepEqual(sent(), ['digest']);
  t.false(await sliceSender.walk());
  t.false(sliceSender.digest());
});

test('a slice of which too many keys change before its last page is resynced after a while', async (t) => {
  const { sliceSender, syncs, clock, sent, resynced } = await aSliceSender('one', 'two');
  await sliceSender.walk();
  const sync = syncs.of(aSlice());

  for (let i = 0; i <= 200_000; i++) sync?.walk?.touch({ ...aKey(), name: `o-${i}` });
  await sliceSender.walk();

  t.is(sync?.phase, 'waiting');
  t.is(sync?.walk, undefined);
  t.deepEqual(resynced, ['too many of its keys have changed meanwhile']);
  sent();
  t.false(await sliceSender.walk());
  clock.advance(60_000);
  t.true(await sliceSender.walk());
  t.deepEqual(sent(), ['begin', 'put one']);
});

test('a resync of a large slice compares buckets first, and sends only those that differ', async (t) => {
  const names = Array.from({ length: 128 }, (_, i) => `n${i}`);
  const { sliceSender, syncs, sent, queue, store } = await aSliceSender(...names);
  const sync = syncs.of(aSlice());
  if (sync === undefined) throw new Error('there is no slice sync');
  const walkAll = async (): Promise<readonly string[]> => {
    const frames: string[] = [];
    while (await sliceSender.walk()) frames.push(...sent());
    return frames;
  };
  await walkAll();
  const objects: StoredObject[] = [];
  for await (const each of snapshotPages(store.objects.snapshot(aScope(), store.revisions.published))) objects.push(...each);
  const digestsOf = (some: readonly StoredObject[]): Uint8Array => {
    const summary = new Summary();
    summary.add(some);
    return summary.digests();
  };
  const [own, lacking] = [new Summary(), objects.filter(({ key }) => key.name !== 'n7')];
  own.add(objects);
  const differing = own.differing(digestsOf(lacking)) ?? noBuckets;
  const isSent = inBuckets(differing);
  const some = objects.filter(({ key }) => isSent(key)).length;
  t.true(some > 0 && some < 128 / 2);

  for (const [digests, buckets, begins, puts] of [
    [digestsOf(objects), noBuckets, 0, 0],
    [digestsOf(lacking), differing, 0, some],
    [new Uint8Array(), undefined, 1, 128],
  ] as const) {
    sent();
    syncs.makeDue(sync);
    await sliceSender.walk();
    const begin = queue.take();
    if (begin?.kind !== 'begin') throw new Error('the first frame is no begin');
    t.true(begin.compares);
    const summary = { kind: 'summary', slice: aSlice() } as const;
    sliceSender.learnSummary({ ...summary, sequence: begin.sequence + 1, digests: digestsOf(objects) });
    while (sync.phase === 'comparing' && sync.comparison?.isRead === false) await sliceSender.walk();
    t.is(sync.phase, 'comparing', 'the answer was for another begin');

    sliceSender.learnSummary({ ...summary, sequence: begin.sequence, digests });
    const frames = await walkAll();

    t.is(frames.filter((frame) => frame === 'begin').length, begins);
    t.is(frames.filter((frame) => frame.startsWith('put')).length, puts, 'one object per page');
    t.true(sliceSender.end());
    const end = queue.take();
    if (end?.kind !== 'end') throw new Error('it is to end');
    t.deepEqual([end.count, end.buckets], [puts, buckets]);
  }
});

test('a slice whose snapshot is compacted during the comparison is sent whole, even if the summary of the other end then arrives', async (t) => {
  const names = Array.from({ length: 128 }, (_, i) => `n${i}`);
  const { sliceSender, syncs, clock, sent, queue, store, tail } = await aSliceSender(...names);
  const sync = syncs.of(aSlice());
  if (sync === undefined) throw new Error('there is no slice sync');
  while (await sliceSender.walk()) sent();
  sent();
  syncs.makeDue(sync);
  await sliceSender.walk();
  const begin = queue.take();
  if (begin?.kind !== 'begin') throw new Error('the first frame is no begin');
  t.true(begin.compares);

  clock.advance(3_600_000);
  await mustPush(store.writer.lane(), [anUpsert('later')]);
  store.compact();
  while (tail.isBehind) await tail.next().catch(() => tail.jump(store.revisions.published));
  await sliceSender.walk();
  sliceSender.learnSummary({ kind: 'summary', slice: aSlice(), sequence: begin.sequence, digests: new Summary().digests() });

  t.true(await sliceSender.walk());
  t.deepEqual(sent(), ['begin']);
});

test('a slice that is resynced while its digest is read gets the digest of what was sent', async (t) => {
  const { sliceSender, syncs, sent, acknowledge, queue, known } = await aFilteringSender(aPolicy({ clusters: ['acme'] }), ['one', 'two']);
  const sync = syncs.of(aSlice());
  if (sync === undefined) throw new Error('there is no slice sync');
  while (await sliceSender.walk()) sent();
  t.true(sliceSender.end());
  sent();
  acknowledge(4);
  t.true(sliceSender.digest());
  sent();
  acknowledge(5);

  sliceSender.checkAll();
  t.true(sliceSender.digest());
  await sliceSender.walk();
  syncs.makeDue(sync);
  const frames: Frame[] = [];
  for (let isMore = true; isMore;) {
    isMore = (await sliceSender.walk()) || sliceSender.end();
    for (let frame = queue.take(); frame !== undefined; frame = queue.take()) frames.push(frame);
  }
  const lastFrame = frames.at(-1);
  if (lastFrame === undefined || !('sequence' in lastFrame)) throw new Error('something was sent');
  acknowledge(lastFrame.sequence);
  sliceSender.digest();
  for (let frame = queue.take(); frame !== undefined; frame = queue.take()) frames.push(frame);

  const digests = frames.flatMap((frame) => (frame.kind === 'digest' ? [frame.value] : []));
  t.deepEqual(new Set(digests), new Set([known.slice(aSlice())?.digest]));
});

test('slices whose type does not cross the link are begun only a few at a time', async (t) => {
  const { sliceSender, syncs, sent } = await aFilteringSender(aPolicy({ types: ['apiexports.apis.kcp.io'] }), []);
  syncs.receiveInventory(
    Array.from({ length: 1_000 }, (_, i) => ({ slice: aSlice({ resource: `gone${i}` }), filterHash: '', syncedTerm: 0 })),
  );
  sent();

  const begun: number[] = [];
  while (await sliceSender.walk()) begun.push(sent().filter((kind) => kind === 'begin').length);

  t.is(
    begun.reduce((sum, count) => sum + count, 0),
    1_001,
  );
  t.true(Math.max(...begun) <= 256, begun.join());
});
