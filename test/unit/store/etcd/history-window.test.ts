import { setImmediate } from 'node:timers/promises';
import { largeTest, rounds } from '../../../support/sizes.js';
import { test } from '../../../support/test.js';
import fc from 'fast-check';
import type { Change } from '../../../../src/domain/change.js';
import type { LogChunk } from '../../../../src/domain/store-port.js';
import { HistoryWindow, type WindowLimits } from '../../../../src/store/etcd/history-window.js';
import { fastestMs } from '../../../support/fastest.js';
import { aBody, aKey, aScope, type Place } from '../../../support/objects.js';
import { collectGarbage } from '../../../support/collect-garbage.js';

const wide: WindowLimits = { ageMs: Infinity, changesMax: Infinity, bytesMax: Infinity };
const exports = { group: 'apis.kcp.io', resource: 'apiexports', identity: '' };
const always = (): boolean => true;

function aChange(revision: number, place: Place = {}, { isDelete = false, moves = false } = {}): Change {
  const key = aKey(place);
  const resourceVersion = String(revision);
  const of = { key, revision, previous: () => undefined, ...(moves && { movedPath: { before: undefined, after: undefined } }) };
  if (isDelete) return { kind: 'delete', resourceVersion, ...of };
  return { kind: 'put', object: { key, revision, resourceVersion, body: aBody(key) }, created: false, ...of };
}

/** Trims turn after turn until nothing is left to trim. */
function trimAll(window: HistoryWindow, nowMs: number, heldRevision = Infinity): void {
  while (window.trim(nowMs, heldRevision));
}

function textOf({ changes, upTo }: LogChunk): string {
  return `${changes.map(({ revision, key }) => `${key.name}@${revision}`).join(' ')} to ${upTo}`;
}

/** Reads chunk after chunk. */
async function readAll(read: (after: number) => Promise<LogChunk>, upTo: number): Promise<readonly Change[]> {
  const all: Change[] = [];
  for (let after = 0; after < upTo;) {
    const chunk = await read(after);
    all.push(...chunk.changes);
    if (chunk.upTo <= after) throw new Error(`a chunk ends at ${chunk.upTo}, behind ${after}`);
    after = chunk.upTo;
  }
  return all;
}

async function firstOf(chunks: AsyncIterable<LogChunk>): Promise<LogChunk> {
  for await (const chunk of chunks) return chunk;
  throw new Error('there is no chunk');
}

test('the changes of a type are read in rising revision, each once, for every identity or for one', async (t) => {
  const place = fc.record({
    resource: fc.constantFrom('apiexports', 'apiexportendpointslices'),
    identity: fc.constantFrom('', 'h1', 'h2'),
  });
  const grown = fc.array(fc.record({ place, isNext: fc.boolean() }), { maxLength: 900 });
  await fc.assert(
    fc.asyncProperty(grown, fc.nat({ max: 900 }), fc.constantFrom('', 'h1', '*'), async (steps, seed, identity) => {
      const window = new HistoryWindow(0, wide);
      let revision = 1;
      const all = steps.map(({ place: at, isNext }, i) => {
        if (isNext) revision += 1;
        return aChange(revision, { ...at, name: `n${i}` });
      });
      for (const change of all) window.add([change], 0);
      const isWanted = ({ name }: { name: string }): boolean => (Number(name.slice(1)) + seed) % 3 > 0;

      const read = await readAll((after) => window.changes({ ...exports, identity }, { after, upTo: revision }, isWanted), revision);

      const wanted = all.filter(
        ({ key }) => key.resource.resource === 'apiexports' && (identity === '*' || key.resource.identity === identity) && isWanted(key),
      );
      // Within one revision the order is undefined.
      const textsOf = (changes: readonly Change[]): readonly string[] =>
        changes.map(({ key, revision: at }) => `${key.name}@${at}`).toSorted();
      t.deepEqual(textsOf(read), textsOf(wanted));
      t.deepEqual(
        read.map(({ revision: at }) => at),
        wanted.map(({ revision: at }) => at),
      );
      const every = await readAll((after) => firstOf(window.everyChange({ after, upTo: revision }, always)), revision);
      t.deepEqual(every.length, all.length);
    }),
    { numRuns: rounds(60) },
  );
});

test('a chunk is as much as a turn may read, splits no revision, and says how far it reaches even if it is empty', async (t) => {
  const window = new HistoryWindow(0, wide);
  for (let revision = 1; revision <= 255; revision += 1) window.add([aChange(revision, { name: `n${revision}` })], 0);
  window.add(
    Array.from({ length: 10 }, (_, i) => aChange(256, { name: `m${i}` })),
    0,
  );
  window.add([aChange(257)], 0);

  const first = await window.changes(exports, { after: 0, upTo: 257 }, always);
  t.is(first.changes.length, 265);
  t.is(first.upTo, 256);
  t.is(textOf(await window.changes(exports, { after: 256, upTo: 257 }, always)), 'one@257 to 257');
  t.is(textOf(await window.changes(exports, { after: 0, upTo: 257 }, () => false)), ' to 256');
  t.is(textOf(await window.changes({ ...exports, resource: 'others' }, { after: 0, upTo: 257 }, always)), ' to 257');
});

test('a change that moves a path is in every chunk of all changes, whatever keys the reader wants', async (t) => {
  const window = new HistoryWindow(0, wide);
  window.add([aChange(1), aChange(2, { name: 'moves' }, { moves: true })], 0);

  t.is(textOf(await firstOf(window.everyChange({ after: 0, upTo: 2 }, () => false))), 'moves@2 to 2');
  t.is(textOf(await window.changes(exports, { after: 0, upTo: 2 }, () => false)), ' to 2');
});

test('changes that are too old, too many or too large are dropped by whole revisions, unless they are held', async (t) => {
  const filled = (limits: Partial<WindowLimits>): HistoryWindow => {
    const window = new HistoryWindow(10, { ...wide, ...limits });
    for (let i = 0; i < 3_000; i += 1)
      window.add([aChange(11 + 2 * i, { name: `a${i}` }), aChange(11 + 2 * i, { name: `b${i}` }, { isDelete: true })], i);
    return window;
  };
  const newest = 11 + 2 * 2_999;

  const aged = filled({ ageMs: 100 });
  trimAll(aged, 2_999);
  t.is(aged.compacted, newest - 2 * 101);
  t.is(aged.size, 2 * 101);
  t.is(textOf(await aged.changes(exports, { after: newest - 2, upTo: newest }, always)), `a2999@${newest} b2999@${newest} to ${newest}`);

  const many = filled({ changesMax: 201 });
  trimAll(many, 0);
  t.is(many.size, 200);
  trimAll(many, 0);
  t.is(many.size, 200);

  const held = filled({ changesMax: 5_900, ageMs: 100_000 });
  trimAll(held, 0, 60);
  t.is(held.compacted, 59, 'the last revision that may go');
  trimAll(held, 0);
  t.is(held.size, 5_900);
  const urgent = filled({ changesMax: 5_700 });
  trimAll(urgent, 0, 60);
  t.is(urgent.size, 5_700, 'a twentieth too much is not held');
  trimAll(held, 103_001);
  t.is(held.size, 0);
  t.is(held.compacted, newest);
  t.is(held.bytes, 0);

  const half = filled({ bytesMax: 100_000 });
  trimAll(half, 0);
  t.true(half.bytes <= 100_000 && half.bytes > 99_000, `${half.bytes}`);
});

largeTest('ten thousand changes of a busy type cost a reader of another type nothing', async (t) => {
  const window = new HistoryWindow(0, wide);
  for (let i = 1; i <= 50_000; i += 1) window.add([aChange(i, i % 5_000 === 0 ? { resource: 'apiexportendpointslices' } : {})], 0);

  const read = (): Promise<LogChunk> =>
    window.changes({ ...exports, resource: 'apiexportendpointslices' }, { after: 0, upTo: 50_000 }, always);
  t.is((await read()).changes.length, 10);
  const tookMs = fastestMs(() => void read(), 5);
  t.true(tookMs < 5, `${tookMs.toFixed(2)} ms`);
});

test('the value that a change replaced counts for as long as the change is kept', (t) => {
  const window = new HistoryWindow(0, { ...wide, bytesMax: 10_000 });
  for (let revision = 1; revision <= 100; revision += 1) {
    const change = aChange(revision, {}, { isDelete: true });
    window.add([change], 0, new Map([[change, 1_000]]));
  }
  t.is(window.bytes, 100_000);
  trimAll(window, 0);
  t.is(window.bytes, 10_000);
  t.is(window.size, 10);
});

test('dropped changes hold no memory, even if only a few were dropped', async (t) => {
  const window = new HistoryWindow(0, { ...wide, changesMax: 10 });
  const held = Array.from({ length: 500 }, (_none, i) => {
    const change = aChange(i + 1, { name: `n${i}` });
    window.add([change], 0);
    trimAll(window, 0);
    return new WeakRef(change);
  });
  await setImmediate();
  collectGarbage();
  t.is(held.filter((change) => change.deref() !== undefined).length, 10);
  t.is(window.size, 10);
});

test('a turn drops a thousand changes and the rest of their revision, and the next turn goes on', (t) => {
  const window = new HistoryWindow(0, { ...wide, changesMax: 100 });
  const aRevision = (revision: number, size: number): void =>
    window.add(
      Array.from({ length: size }, (_none, i) => aChange(revision, { name: `n${i}` })),
      0,
    );
  for (let revision = 1; revision <= 500; revision += 1) aRevision(revision, 1);
  aRevision(501, 1_500);
  for (let revision = 502; revision <= 1_000; revision += 1) aRevision(revision, 1);

  t.true(window.trim(0, Infinity));
  t.deepEqual([window.compacted, window.size], [501, 499]);
  t.false(window.trim(0, Infinity));
  t.deepEqual([window.compacted, window.size], [900, 100]);
});

test('the changes of a key are those still in the window, and changed keys are found by key', (t) => {
  const keys = Array.from({ length: 20 }, (_none, i) =>
    aKey({ name: `n${i}`, ...(i % 2 === 0 && { resource: 'apiexportendpointslices' }) }),
  );
  const window = new HistoryWindow(0, { ...wide, changesMax: 500 });
  const all: Change[] = [];
  for (let revision = 1; revision <= 3_000; revision += 1) {
    // Some keys change often, some hardly ever, and one not any more.
    const i = revision < 100 ? revision % 20 : (revision * revision) % 19;
    const change = aChange(revision, { name: keys[i]!.name, resource: keys[i]!.resource.resource });
    all.push(change);
    window.add([change], 0);
    if (revision % 7 === 0) trimAll(window, 0);
  }
  trimAll(window, 0);
  const here = all.slice(-500);

  for (const key of keys)
    for (const after of [0, 2_600, 2_999, 3_000])
      t.deepEqual(
        [...window.changesOf(key, after)].map(({ revision }) => revision),
        here.filter((change) => change.key.name === key.name && change.revision > after).map(({ revision }) => revision),
      );
  const changed = [...window.changedKeys(exports, 0).scan(aScope())].map(({ key }) => key.name);
  t.deepEqual(
    changed.toSorted(),
    [...new Set(here.filter(({ key }) => key.resource.resource === 'apiexports').map(({ key }) => key.name))].toSorted(),
  );
  t.deepEqual([...window.changedKeys(exports, 3_000).scan(aScope())], [], 'nothing has changed since');
});

test('a client may continue from the beginning of history only if it has received that whole revision', (t) => {
  const scope = { ...exports, shard: '*', cluster: '*' } as const;
  const window = new HistoryWindow(1, { ...wide, changesMax: 2 });
  t.deepEqual(
    [window.hasSeveral(scope, 1), window.remembers(1), window.remembers(2)],
    [true, false, true],
    'nobody knows what else happened then',
  );
  for (const name of ['a', 'b']) window.add([aChange(2, { name })], 0);
  window.add([aChange(3), aChange(4)], 0);
  t.deepEqual([window.hasSeveral(scope, 2), window.hasSeveral(scope, 3)], [true, false]);
  trimAll(window, 0);
  t.deepEqual([window.compacted, window.hasSeveral(scope, 2), window.remembers(2), window.remembers(3)], [2, true, false, true]);
  window.add([aChange(5)], 0);
  trimAll(window, 0);
  t.deepEqual([window.compacted, window.hasSeveral(scope, 3), window.remembers(2), window.remembers(3)], [3, false, false, true]);
});
