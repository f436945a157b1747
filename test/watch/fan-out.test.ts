/** Changes are given to groups a few at a time: in order, each once, and no group waits for the selectors of others. */
import test from 'ava';
import fc from 'fast-check';
import type { Change } from '../../src/domain/change.js';
import { isSelected } from '../../src/domain/object-metadata.js';
import { matches } from '../../src/domain/scope.js';
import { FanOut, type Piece, type Receiver } from '../../src/watch/fan-out.js';
import type { View } from '../../src/watch/scope-index.js';
import { aBody, aKey, aScope, type Place } from '../support/objects.js';
import { everything, selecting } from './a-hub.js';
import { plainEvents } from './plain-events.js';

class Sink implements Receiver {
  readonly view: View;
  readonly pieces: Piece[] = [];
  joinedAt = 0;
  fellBackTo: number | undefined;

  constructor(view: View) {
    this.view = view;
  }

  offer(piece: Piece): void {
    this.pieces.push(piece);
  }

  fallBack(after: number): void {
    this.fellBackTo ??= after;
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

/** Time that is up after so many checks of it. */
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
  const isDone = fanOut.handOut(after(10));

  t.false(isDone);
  t.deepEqual(plain.revisions, [1]);
  t.deepEqual(picky.at(-1)?.revisions, []);
  while (!fanOut.handOut(after(100)));
  t.deepEqual(picky.at(-1)?.revisions, [1]);
});

test('a member that joins a group with pending changes gets none of them, and the earlier members get them first', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [first, second] = [new Sink(aView({}, 'a=1')), new Sink(aView({}, 'a=1'))];
  fanOut.join(first.view, first);
  fanOut.publish([aPutAt(1, {}, { a: '1' })], 1);

  fanOut.join(second.view, second);
  fanOut.publish([aPutAt(2, {}, { a: '1' })], 2);
  while (!fanOut.handOut(after(1)));

  t.deepEqual([first.revisions, second.revisions], [[1, 2], [2]]);
});

test('a member that joins while all others leave their group over a delivery is in a group that is found', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const [full, next] = [new Sink(aView()), new Sink(aView())];
  full.offer = () => fanOut.leave(full.view, full);
  fanOut.join(full.view, full);
  fanOut.publish([aPutAt(1, { name: 'one' })], 1);

  fanOut.join(next.view, next);
  fanOut.publish([aPutAt(2, { name: 'one' })], 2);
  while (!fanOut.handOut(after(1)));

  t.deepEqual(next.revisions, [2]);
});

test('commits without changes for a group move its reached revision at once, others only when they are delivered', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const sink = new Sink(aView({}, 'a=1'));
  fanOut.join(sink.view, sink);

  fanOut.publish([aPutAt(1, {}, { a: '1' })], 1);
  t.deepEqual([fanOut.reached(sink.view), sink.revisions], [0, []]);
  fanOut.handOut(after(1));
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
  fanOut.handOut(after(1));

  for (const { pieces } of sinks) t.deepEqual(pieces.map(({ events }) => events), [256]); // prettier-ignore
  while (!fanOut.handOut(after(1)));
  for (const { revisions } of sinks) t.is(revisions.length, 1_000);
});

test('when more waits than may, the groups furthest behind fall back to their positions, and the others go on', (t) => {
  const fanOut = new FanOut<Sink>(0);
  const plain = new Sink(aView());
  const picky = Array.from({ length: 3 }, (_, i) => new Sink(aView({}, `team!=t${i}`)));
  for (const sink of [plain, ...picky]) fanOut.join(sink.view, sink);

  let revision = 0;
  for (let i = 0; i < 30; i += 1) {
    const changes = Array.from({ length: 1_000 }, () => aPutAt((revision += 1), { name: 'one' }, { team: 'a' }));
    fanOut.publish(changes, revision);
    // Time for the plain group alone, and one visit of another.
    for (let k = 0; k < 4; k += 1) fanOut.handOut(after(1));
  }
  while (!fanOut.handOut(after(100)));

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

test('whatever joins, leaves or is flushed: each gets its part of what came since, in order, once', (t) => {
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
        } else if (next.kind === 'handOut') fanOut.handOut(after(next.visits));
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
      while (!fanOut.handOut(after(2)));
      for (const sink of open.values()) {
        t.deepEqual(sink.revisions, due(sink));
        for (const [i, piece] of sink.pieces.entries()) t.true(piece.after >= (sink.pieces[i - 1]?.upTo ?? 0) && piece.upTo > piece.after);
      }
    }),
    { numRuns: 500 },
  );
});
