import { setImmediate as turn } from 'node:timers/promises';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { Refused } from '../../../src/domain/errors.js';
import type { LogChunk } from '../../../src/domain/store-port.js';
import { Tail } from '../../../src/tree/links/tail.js';
import { FakeHistory } from './some-changes.js';

const content = {};

function aTail(history: FakeHistory, position = 0) {
  const rung = { times: 0 };
  const tail = new Tail(
    { history, revisions: history, commits: history, isWanted: () => true, notify: () => void (rung.times += 1) },
    position,
  );
  return { tail, rung };
}

async function readAll(tail: Tail): Promise<readonly LogChunk[]> {
  const chunks: LogChunk[] = [];
  while (tail.isBehind) chunks.push(await tail.next());
  return chunks;
}

function revisions(chunks: readonly LogChunk[]): readonly number[] {
  return chunks.flatMap(({ changes }) => changes.map(({ revision }) => revision));
}

const anyCommit = fc.record({
  isAtOnce: fc.boolean(),
  writes: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      cluster: fc.constantFrom('acme', 'beta'),
      deletes: fc.boolean(),
      moves: fc.boolean(),
    }),
    { minLength: 1, maxLength: 5, selector: ({ name, cluster }) => `${cluster}/${name}` },
  ),
});
type SomeCommit = typeof anyCommit extends fc.Arbitrary<infer Commit> ? Commit : never;
const anyPace = fc.array(fc.oneof(anyCommit, fc.constantFrom('take' as const, 'turn' as const)), { maxLength: 30 });

test('a tail gives every change once and in order, no partial revision, no key twice in a chunk, and moves only at its end', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyCommit, { maxLength: 4 }), anyPace, fc.nat({ max: 10 }), async (before, steps, from) => {
      const history = new FakeHistory();
      const commit = ({ writes, isAtOnce }: SomeCommit): void => {
        const written = writes.map(({ name, cluster, deletes, moves }) => ({
          place: { name, cluster },
          content: deletes ? undefined : content,
          ...(moves ? { movedPath: { before: undefined, after: undefined } } : {}),
        }));
        if (isAtOnce) history.commitAtOnce(...written);
        else history.commit(...written);
      };
      for (const some of before) commit(some);
      const start = Math.min(from, history.published);
      const { tail, rung } = aTail(history, start);
      const chunks: LogChunk[] = [];
      let taking: Promise<void> | undefined;
      const take = async (): Promise<void> => void chunks.push(await tail.next());
      for (const step of steps) {
        if (step === 'turn') await turn();
        else if (step !== 'take') commit(step);
        else {
          // Its one reader asks again only after an answer; commits happen meanwhile.
          await taking;
          taking = tail.isBehind ? take() : undefined;
        }
      }
      await taking;
      chunks.push(...(await readAll(tail)));
      tail.close();

      t.deepEqual(
        revisions(chunks),
        history.all.map(({ revision }) => revision).filter((revision) => revision > start),
      );
      t.is(tail.position, history.published);
      t.is(rung.times, steps.filter((step) => typeof step !== 'string').length);
      for (const { changes, upTo } of chunks) {
        t.is(new Set(changes.map(({ key }) => JSON.stringify(key))).size, changes.length);
        t.true(changes.every(({ revision, movedPath }) => movedPath === undefined || revision === changes.at(-1)!.revision));
        t.true(changes.every(({ revision }) => revision <= upTo));
      }
      const ofChunks = chunks.map((chunk) => new Set(revisions([chunk])));
      t.is(ofChunks.reduce((sum, { size }) => sum + size, 0), new Set(revisions(chunks)).size); // prettier-ignore
    }),
    { numRuns: rounds(100) },
  );
});

test('a tail that keeps up takes commits as they are published and does not read the log', async (t) => {
  const history = new FakeHistory();
  const { tail } = aTail(history);

  for (let i = 0; i < 5; i++) {
    history.commit({ place: { name: `o-${i}` }, content });
    await tail.next();
  }

  t.is(tail.position, 5);
  t.is(history.reads, 0);
});

test('commits that wait for too long are dropped, and then read from the log without a hole', async (t) => {
  const history = new FakeHistory();
  history.chunk = 1_000;
  const { tail } = aTail(history);

  for (let i = 0; i < 50; i++) history.commit(...Array.from({ length: 100 }, (_, k) => ({ place: { name: `o-${i}-${k}` }, content })));
  const chunks = await readAll(tail);

  t.true(history.reads > 0);
  t.is(revisions(chunks).length, 5_000);
  t.deepEqual(
    revisions(chunks),
    history.all.map(({ revision }) => revision),
  );
});

test('a tail behind the compacted log is refused, and goes on from where it jumps to', async (t) => {
  const history = new FakeHistory();
  for (let i = 0; i < 9; i++) history.commit({ place: { name: `o-${i}` }, content });
  const { tail } = aTail(history, 2);
  history.compacted = 5;

  await t.throwsAsync(tail.next(), { instanceOf: Refused });
  tail.jump(history.published);
  history.commit({ place: { name: 'last' }, content });

  t.deepEqual(revisions(await readAll(tail)), [10]);
});

test('a revision of which more becomes wanted while it is given is read again as a whole, or not at all', async (t) => {
  const history = new FakeHistory();
  history.commitAtOnce(
    { place: { name: 'a' }, content, movedPath: { before: undefined, after: undefined } },
    { place: { name: 'b' }, content, movedPath: { before: undefined, after: undefined } },
    { place: { name: 'c' }, content },
  );
  history.commit({ place: { name: 'a' }, content });
  const wanted = new Set<string>(['amber']);
  const parts = { history, revisions: history, commits: history, notify: () => {} };
  const tail = new Tail({ ...parts, isWanted: ({ shard }) => wanted.has(shard) }, 0);

  const chunks = [await tail.next()];
  t.is(tail.position, 1);
  wanted.add('birch');
  chunks.push(...(await readAll(tail)));

  t.deepEqual(chunks.map((chunk) => revisions([chunk])), [[1, 1, 1], [2]]); // prettier-ignore
});

test('a closed tail gives no changes', (t) => {
  const history = new FakeHistory();
  const { tail, rung } = aTail(history);

  tail.close();
  history.commit({ place: {}, content });

  t.is(rung.times, 0);
});

test('a shard that becomes wanted during a chunk that was read without it is in the rest of the changes', async (t) => {
  const history = new FakeHistory();
  history.chunk = 100;
  for (const place of [{ name: 'a' }, { name: 'a' }, { name: 'b', shard: 'birch' }, { name: 'c' }]) history.commit({ place, content });
  const wanted = new Set(['amber']);
  const parts = { history, revisions: history, commits: history, notify: () => {} };
  const tail = new Tail({ ...parts, isWanted: ({ shard }) => wanted.has(shard) }, 0);

  t.deepEqual(revisions([await tail.next()]), [1]);
  wanted.add('birch');

  t.deepEqual(revisions(await readAll(tail)), [2, 3, 4]);
});
