/**
 * Changes are given to groups a few at a time: in order, each once, and no group waits for the
 * selectors of others.
 */
import { largeTest, rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { Change } from '../../../src/domain/change.js';
import { Refused } from '../../../src/domain/errors.js';
import { isSelected } from '../../../src/domain/object-metadata.js';
import { matches } from '../../../src/domain/scope.js';
import { FanOut, type Piece, type Receiver } from '../../../src/watch/fan-out.js';
import type { View } from '../../../src/watch/scope-index.js';
import { aBody, aKey, aScope, type Place } from '../../support/objects.js';
import { everything, selecting } from './a-hub.js';
import { plainEvents } from './plain-events.js';

class Sink implements Receiver {
  readonly view: View;
  readonly pieces: Piece[] = [];
  joinedAt = 0;
  fellBackTo: number | undefined;
  reason: string | undefined;

  constructor(view: View) {
    this.view = view;
  }

  offer(piece: Piece): void {
    this.pieces.push(piece);
  }

  fallBack(after: number, fault?: unknown): void {
    this.fellBackTo ??= after;
    if (fault instanceof Refused) this.reason ??= fault.refusal.reason;
  }

  get revisions(): readonly number[] {
    return this.pieces.flatMap(({ bytes }) =>
      Buffer.from(bytes)
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => Number((JSON.parse(line) as { at: string }).at)),
    );
  }
}

function aPutAt(revision: number, place: Place, labels: Record<string, string> = {}, bytes = 0): Change {
  const key = aKey(place);
  const padded = bytes === 0 ? {} : { spec: 'x'.repeat(bytes) };
  const object = { key, revision, resourceVersion: String(revision), body: aBody(key, { labels, ...padded }) };
  return { kind: 'put', key, revision, object, created: true, previous: () => undefined };
}

const aView = (place: Place = {}, labels = ''): View => ({
  scope: aScope(place),
  selector: labels === '' ? everything : selecting(labels),
  representation: plainEvents(),
});

/** A time limit that is over after so many checks. */
function after(looks: number): () => boolean {
  let left = looks;
  return () => (left -= 1) < 0;
}

test('a group that selects everything has its changes before thousands that select something are done', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const picky = Array.from({ length: 5_000 }, (_, i) => new Sink(aView({}, `team=t${i}`)));
  const plain = new Sink(aView());
  for (const sink of [...picky, plain]) fanOut.join(sink.view, sink);

  fanOut.publish([aPutAt(1, { name: 'one' }, { team: 't4999' })], 1);
  const isDone = fanOut.deliver(after(10));

  t.false(isDone);
  t.deepEqual(plain.revisions, [1]);
  t.deepEqual(picky.at(-1)?.revisions, []);
  while (!fanOut.deliver(after(100)));
  t.deepEqual(picky.at(-1)?.revisions, [1]);
});

test('a member that joins a group with pending changes gets none of them, and the earlier members get them first', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [first, second] = [new Sink(aView({}, 'a=1')), new Sink(aView({}, 'a=1'))];
  fanOut.join(first.view, first);
  fanOut.publish([aPutAt(1, {}, { a: '1' })], 1);

  fanOut.join(second.view, second);
  fanOut.publish([aPutAt(2, {}, { a: '1' })], 2);
  while (!fanOut.deliver(after(1)));

  t.deepEqual([first.revisions, second.revisions], [[1, 2], [2]]);
});

test('a member that joins while a delivery makes all others leave still gets later changes', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [full, next] = [new Sink(aView()), new Sink(aView())];
  full.offer = () => fanOut.leave(full.view, full);
  fanOut.join(full.view, full);
  fanOut.publish([aPutAt(1, { name: 'one' })], 1);

  fanOut.join(next.view, next);
  fanOut.publish([aPutAt(2, { name: 'one' })], 2);
  while (!fanOut.deliver(after(1)));

  t.deepEqual(next.revisions, [2]);
});

test('a commit without changes for a group moves its reached revision at once, any other commit only when it is delivered', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const sink = new Sink(aView({}, 'a=1'));
  fanOut.join(sink.view, sink);

  fanOut.publish([aPutAt(1, {}, { a: '1' })], 1);
  t.deepEqual([fanOut.reached(sink.view), sink.revisions], [0, []]);
  fanOut.deliver(after(1));
  t.is(fanOut.reached(sink.view), 1);
  fanOut.publish([], 7);
  t.is(fanOut.reached(sink.view), 7);
  fanOut.publish([aPutAt(8, {}, { a: '1' }), aPutAt(9, {}, { a: '1' })], 9);
  t.is(fanOut.reached(sink.view), 7, 'it never falls');
});

test('a group gets a bounded part at once, and then waits for the others', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const sinks = [new Sink(aView()), new Sink(aView({ name: 'one' }))];
  for (const sink of sinks) fanOut.join(sink.view, sink);

  fanOut.publish(
    Array.from({ length: 1_000 }, (_, i) => aPutAt(i + 1, { name: 'one' })),
    1_000,
  );
  fanOut.deliver(after(1));

  for (const { pieces } of sinks) t.deepEqual(pieces.map(({ events }) => events), [256]); // prettier-ignore
  while (!fanOut.deliver(after(1)));
  for (const { revisions } of sinks) t.is(revisions.length, 1_000);
});

for (const [what, bytes] of [
  ['of more changes than go out at once', 0],
  ['of more bytes than go out at once', 8_000],
] as const)
  test(`a revision ${what} is delivered as a whole, also to groups that select only some of it`, (t) => {
    const fanOut = new FanOut<Sink>(0);
    const [plain, picky] = [new Sink(aView()), new Sink(aView({}, 'team=a'))];
    for (const sink of [plain, picky]) fanOut.join(sink.view, sink);
    const team = (i: number): Record<string, string> => ({ team: i % 2 === 0 ? 'a' : 'b' });

    fanOut.publish(
      [aPutAt(1, {}), ...Array.from({ length: 600 }, (_, i) => aPutAt(2, { name: `n${i}` }, team(i), bytes)), aPutAt(3, {})],
      3,
    );
    fanOut.deliver(after(0));
    t.deepEqual(plain.pieces.map(({ after: behind, upTo }) => [behind, upTo]), [[0, 2]]); // prettier-ignore
    while (!fanOut.deliver(after(1)));

    t.deepEqual(plain.revisions, [1, ...Array.from({ length: 600 }, () => 2), 3]);
    t.deepEqual(picky.revisions, Array.from({ length: 300 }, () => 2)); // prettier-ignore
    for (const { pieces } of [plain, picky]) for (const { after: behind, upTo } of pieces) t.true(behind < upTo);
  });

test('a revision with more changes than may be sent ends the watches that it concerns, and no others', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [all, acme, beta] = [new Sink(aView()), new Sink(aView({ cluster: 'acme' })), new Sink(aView({ cluster: 'beta' }))];
  for (const sink of [all, acme, beta]) fanOut.join(sink.view, sink);

  fanOut.publish([aPutAt(1, { name: 'one' })], 1);
  while (!fanOut.deliver(after(1)));
  const large = Array.from({ length: 5_001 }, (_, i) => aPutAt(2, { name: `n${i}` }));
  fanOut.publish([...large, aPutAt(2, { cluster: 'beta' }), aPutAt(3, { name: 'one' })], 3);
  while (!fanOut.deliver(after(1)));

  for (const sink of [all, acme]) {
    t.deepEqual(sink.revisions, [1]);
    t.deepEqual([sink.fellBackTo, sink.reason], [1, 'Expired']);
  }
  t.deepEqual([beta.revisions, beta.fellBackTo], [[2], undefined]);
});

test('a revision whose replaced objects are too large together ends the watches that would get them', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [plain, picky] = [new Sink(aView({ cluster: 'acme' })), new Sink(aView({ cluster: 'acme' }, 'few=1'))];
  for (const sink of [plain, picky]) fanOut.join(sink.view, sink);
  const removed = (revision: number, name: string, labels: Record<string, string>, bytes: number): Change => {
    const put = aPutAt(revision, { name }, labels, bytes);
    const { key } = put;
    return {
      kind: 'delete',
      key,
      revision,
      resourceVersion: String(revision),
      previous: () => (put.kind === 'put' ? put.object : undefined),
    };
  };

  const large = Array.from({ length: 200 }, (_, i) => removed(1, `n${i}`, i < 3 ? { few: '1' } : {}, 100_000));
  fanOut.publish(large, 1);
  while (!fanOut.deliver(after(1)));
  // Separately they are sent, however many there are.
  const alone = new Sink(aView({ cluster: 'beta' }));
  fanOut.join(alone.view, alone);
  fanOut.publish(large.map((change, i) => ({ ...change, key: aKey({ cluster: 'beta', name: `n${i}` }), revision: i + 2, resourceVersion: String(i + 2) })), 201); // prettier-ignore
  while (!fanOut.deliver(after(1)));

  t.deepEqual([plain.revisions, plain.reason], [[], 'Expired']);
  t.deepEqual(picky.revisions, [1, 1, 1]);
  t.is(alone.revisions.length, 200);
  t.true(Math.max(...alone.pieces.map(({ events }) => events)) <= 11, 'a mebibyte at once');
});

largeTest('if too much waits, the groups furthest behind fall back to their positions, and the others go on', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const plain = new Sink(aView());
  const picky = Array.from({ length: 3 }, (_, i) => new Sink(aView({}, `team!=t${i}`)));
  for (const sink of [plain, ...picky]) fanOut.join(sink.view, sink);

  let revision = 0;
  for (let i = 0; i < 30; i += 1) {
    const changes = Array.from({ length: 1_000 }, () => aPutAt((revision += 1), { name: 'one' }, { team: 'a' }));
    fanOut.publish(changes, revision);
    // Enough time for the plain group, and for one visit of another group.
    for (let k = 0; k < 4; k += 1) fanOut.deliver(after(1));
  }
  while (!fanOut.deliver(after(100)));

  t.is(plain.fellBackTo, undefined);
  t.is(plain.revisions.length, 30_000);
  t.true(picky.some(({ fellBackTo }) => fellBackTo !== undefined));
  for (const { fellBackTo = Infinity, revisions } of picky) {
    const before = revisions.filter((each) => each <= fellBackTo);
    t.deepEqual(
      before,
      Array.from({ length: before.length }, (_, i) => i + 1),
    );
    if (fellBackTo < Infinity) t.is(before.length, fellBackTo);
  }
});

type Action =
  | Readonly<{ kind: 'publish'; names: readonly string[]; label: string }>
  | Readonly<{ kind: 'join' | 'leave' | 'flush'; who: number }>
  | Readonly<{ kind: 'handOut'; visits: number }>;

const names = ['a', 'b', 'c'];
const views = [aView(), aView({ name: 'a' }), aView({}, 'l=x'), aView({ name: 'b' }, 'l=x'), aView({}, 'l!=x'), aView({ cluster: 'acme' })];
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('publish' as const), names: fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }), label: fc.constantFrom('x', 'y') }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('join' as const, 'leave' as const, 'flush' as const), who: fc.nat(11) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('handOut' as const), visits: fc.integer({ min: 1, max: 3 }) }) },
); // prettier-ignore

largeTest('an idle group that had received everything before falls back to that position when too much waits', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const idle = Array.from({ length: 3 }, (_, i) => new Sink(aView({ cluster: 'acme' }, `team=t${i}`)));
  for (const sink of idle) fanOut.join(sink.view, sink);
  for (let revision = 1; revision <= 1_000; revision += 1) fanOut.publish([aPutAt(revision, { name: 'n', cluster: 'beta' })], revision);
  while (!fanOut.deliver(after(100)));

  for (let revision = 1_001; revision <= 12_000; revision += 1)
    fanOut.publish([aPutAt(revision, { name: 'n', cluster: 'acme' })], revision);
  while (!fanOut.deliver(after(100)));

  t.deepEqual(
    idle.map(({ fellBackTo }) => fellBackTo),
    [1_000, 1_000, 1_000],
  );
});

test('whatever joins, leaves or is flushed: each member gets its part of later changes, in order, once', (t) => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const fanOut = new FanOut<Sink>(0);
      const log: Change[] = [];
      const open = new Map<number, Sink>();
      const due = (sink: Sink): readonly number[] =>
        log.filter((change) => change.kind === 'put' && change.revision > sink.joinedAt && matches(sink.view.scope, change.key) && isSelected(change.object, sink.view.selector)).map(({ revision }) => revision); // prettier-ignore

      for (const next of actions) {
        if (next.kind === 'publish') {
          const changes = next.names.map((name, i) => aPutAt(log.length + i + 1, { name }, { l: next.label }));
          log.push(...changes);
          fanOut.publish(changes, log.length);
        } else if (next.kind === 'handOut') fanOut.deliver(after(next.visits));
        else if (next.kind === 'join' && !open.has(next.who)) {
          const sink = new Sink(views[next.who % views.length]!);
          sink.joinedAt = log.length;
          open.set(next.who, sink);
          fanOut.join(sink.view, sink);
        } else if (next.kind === 'leave') {
          const sink = open.get(next.who);
          open.delete(next.who);
          if (sink === undefined) continue;
          fanOut.leave(sink.view, sink);
          t.deepEqual(sink.revisions, due(sink).slice(0, sink.revisions.length));
        } else if (next.kind === 'flush') {
          const sink = open.get(next.who);
          if (sink === undefined) continue;
          fanOut.flush(sink.view);
          t.deepEqual(sink.revisions, due(sink));
        }
      }
      while (!fanOut.deliver(after(2)));
      for (const sink of open.values()) {
        t.deepEqual(sink.revisions, due(sink));
        for (const [i, piece] of sink.pieces.entries()) t.true(piece.after >= (sink.pieces[i - 1]?.upTo ?? 0) && piece.upTo > piece.after);
      }
    }),
    { numRuns: rounds(500) },
  );
});
