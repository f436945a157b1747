import test from 'ava';
import fc from 'fast-check';
import type { SliceInflow } from '../../src/tier/open-slices.js';
import { pushed } from '../intake/a-session.js';
import { aSlice } from '../support/pushes.js';
import { aContext, begin, digest, end, everyType, exports, instances, progress, put, remove, SteppedInflow, textsOf } from './an-inflow.js';

type Phase = SliceInflow['phase'] | 'told';
type SliceEvent = 'begin' | 'put' | 'delete' | 'end' | 'wrong end' | 'digest' | 'dropped' | 'declared';
type Row = Readonly<Record<SliceEvent, readonly [next: Phase, ...effects: string[]]>>;

/** What each event comes to in each phase of its slice; `told`: by changes, which is every slice of which nothing is remembered. */
const table: Readonly<Record<Phase, Row>> = {
  told: {
    begin: ['stating', 'push begin'],
    put: ['told', 'push state'],
    delete: ['told', 'push retract'],
    end: ['told', 'push end'],
    'wrong end': ['told', 'push end'],
    digest: ['told', 'push compare'],
    dropped: ['parked', 'send restate'],
    declared: ['told'],
  },
  stating: {
    begin: ['stating', 'push begin'],
    put: ['stating', 'push state'],
    delete: ['stating', 'push retract'],
    end: ['told', 'push end'],
    'wrong end': ['told', 'push doubt', 'send restate'],
    digest: ['stating', 'push compare'],
    dropped: ['parked', 'send restate'],
    declared: ['stating'],
  },
  parked: {
    begin: ['stating', 'push begin'],
    put: ['parked', 'push'],
    delete: ['parked', 'push'],
    end: ['parked', 'push'],
    'wrong end': ['parked', 'push'],
    digest: ['parked', 'push'],
    dropped: ['parked', 'send restate'],
    declared: ['parked', 'send restate'],
  },
};

/** An inflow whose slice is in that phase, with one object put since its begin; its types are all known. */
function inPhase(phase: Phase): SteppedInflow {
  const inflow = new SteppedInflow(aContext({ typeOf: phase === 'parked' ? () => undefined : everyType }));
  if (phase === 'stating') inflow.frame(begin(1), put(2, [pushed('one')]));
  if (phase === 'parked') inflow.frame(begin(1));
  inflow.settleAll();
  inflow.context = aContext({ typeOf: everyType });
  return inflow;
}

function phaseOf(inflow: SteppedInflow): Phase {
  return inflow.state.slices.of(exports)?.phase ?? 'told';
}

function happen(inflow: SteppedInflow, event: SliceEvent) {
  const { next } = inflow.state;
  switch (event) {
    case 'begin':
      return inflow.frame(begin(next));
    case 'put':
      return inflow.frame(put(next, [pushed('two')]));
    case 'delete':
      return inflow.frame(remove(next, ['two']));
    case 'end':
      return inflow.frame(end(next, 1));
    case 'wrong end':
      return inflow.frame(end(next, 7));
    case 'digest':
      return inflow.frame(digest(next));
    case 'dropped':
      return inflow.take({ kind: 'dropped', slices: [exports] });
    case 'declared':
      return inflow.take({ kind: 'declared' });
  }
}

for (const phase of ['told', 'stating', 'parked'] as const)
  test(`a slice that is ${phase} goes on as the table says`, (t) => {
    for (const event of ['begin', 'put', 'delete', 'end', 'wrong end', 'digest', 'dropped', 'declared'] as const) {
      const inflow = inPhase(phase);

      const effects = happen(inflow, event);

      t.deepEqual([phaseOf(inflow), ...textsOf(effects)], [...table[phase][event]], event);
    }
  });

test('X1: a number that is not the next one ends the connection, and takes nothing along', (t) => {
  for (const sequence of [0, 2, -1, 1.5, Number.MAX_SAFE_INTEGER]) {
    for (const frame of [
      put(sequence, [pushed('one')]),
      remove(sequence, ['one']),
      begin(sequence),
      end(sequence, 0),
      digest(sequence),
      progress(sequence),
    ]) {
      const inflow = new SteppedInflow();

      t.deepEqual(textsOf(inflow.frame(frame)), ['bye protocol'], `${frame.kind} ${sequence}`);
      t.is(inflow.state.next, 1);
    }
  }
});

test('numbers count mutations: those of a frame stand for all that is in it', (t) => {
  const inflow = new SteppedInflow();

  inflow.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three', 'four', 'five']), end(7, 2), progress(8));

  t.is(inflow.state.next, 9);
  t.deepEqual(
    inflow.works.map(({ last }) => last),
    [1, 3, 6, 7, 8],
  );
});

test('the position of a put or delete is reached with what it came with, whatever becomes of that', (t) => {
  const open = new SteppedInflow();
  t.deepEqual(textsOf(open.frame({ ...put(1, [pushed('one')]), position: '9' })), ['push state reach']);
  t.deepEqual(textsOf(open.frame({ ...remove(2, ['one']), position: '10' })), ['push retract reach']);
  t.deepEqual(
    open.works.map(({ pushes }) => pushes.at(-1)),
    ['9', '10'].map((position) => ({ kind: 'reach', side: 'parent', position })),
  );

  const closed = new SteppedInflow(aContext({ takes: () => false }));
  t.deepEqual(textsOf(closed.frame({ ...put(1, [pushed('one')]), position: '9' })), ['send refuse 1', 'refused', 'push reach']);

  const parked = new SteppedInflow(aContext({ typeOf: () => undefined, holds: () => false }));
  t.deepEqual(textsOf(parked.frame({ ...put(1, [pushed('one')]), position: '9' })), ['parked', 'push reach']);
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['again']);
  parked.settle();
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['push reach']);
});

test('X2: what is settled is acknowledged up to its last number, and frees its credit', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(put(1, [pushed('one'), pushed('two')]), remove(3, ['one']));

  t.deepEqual(textsOf(inflow.settle({ kind: 'written', revision: 3 })), ['send ack 2']);
  t.is(inflow.state.unsettled.mutations, 1);
  t.deepEqual(textsOf(inflow.settle()), ['send ack 3']);
  t.deepEqual(inflow.state.unsettled, { mutations: 0, bytes: 0 });
});

test('X3: what is fenced, unbegun or differs is acknowledged all the same; what can be mended is asked for anew', (t) => {
  const fenced = new SteppedInflow();
  fenced.frame(put(1, [pushed('one')]));
  t.deepEqual(textsOf(fenced.settle({ kind: 'fenced', holder: undefined })), ['send ack 1']);

  const unbegun = new SteppedInflow();
  unbegun.frame(end(1, 0));
  t.deepEqual(textsOf(unbegun.settle({ kind: 'unbegun' })), ['send ack 1', 'send restate']);

  const differs = new SteppedInflow();
  differs.frame(digest(1));
  t.deepEqual(textsOf(differs.settle({ kind: 'differs', digest: '1', isInStep: true })), ['send ack 1', 'differs', 'send restate']);
});

test('a store that takes nothing ends the connection, without an acknowledgement', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(inflow.settle({ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'full' } })), [
    'bye unavailable',
  ]);
});

test('more than there was credit for, or than a frame may hold, ends the connection', (t) => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `o-${i}`);
  const tooMany = new SteppedInflow();
  t.deepEqual(textsOf(tooMany.frame(remove(1, names(11)))), ['bye protocol']);

  const unsettled = new SteppedInflow();
  unsettled.frame(remove(1, names(10)), remove(11, names(9)), progress(20));
  t.deepEqual(textsOf(unsettled.frame(progress(21))), ['bye protocol']);

  const settled = new SteppedInflow();
  settled.frame(remove(1, names(10)), remove(11, names(10)));
  settled.settle();
  t.deepEqual(textsOf(settled.frame(progress(21))), ['push reach']);

  const heavy = new SteppedInflow(aContext({ credit: { mutations: 20, bytes: 100 } }));
  t.deepEqual(textsOf(heavy.frame(put(1, [pushed('one'), pushed('two')]))), ['bye protocol']);
});

test('X4: a type that nobody declares parks its slice, once, behind what might declare it; others go on', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(inflow.frame(begin(2, instances))), ['again']);
  t.is(inflow.state.next, 2);
  inflow.settleAll();
  t.deepEqual(textsOf(inflow.frame(begin(2, instances))), ['parked', 'push doubt']);
  inflow.settleAll();
  t.deepEqual(textsOf(inflow.frame(put(3, [pushed('one')], instances))), ['push']);
  t.deepEqual(textsOf(inflow.settle()), ['send ack 3']);
  t.deepEqual(textsOf(inflow.frame(put(4, [pushed('two')]))), ['push state']);
});

test('what waited for its declaration is asked for once it is there', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(begin(1, instances));
  inflow.settleAll();
  t.deepEqual(inflow.take({ kind: 'declared' }), []);

  inflow.context = aContext({ typeOf: everyType });

  t.deepEqual(textsOf(inflow.take({ kind: 'declared' })), ['send restate']);
  t.deepEqual(inflow.take({ kind: 'declared' }), []);
});

test('what the policy of this end does not take is refused one by one, counted, and removes nothing', (t) => {
  const inflow = new SteppedInflow(aContext({ takes: () => false }));

  const effects = inflow.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three']), digest(5), end(6, 2));

  t.deepEqual(textsOf(effects), ['push', 'send refuse 2', 'refused', 'send refuse 3', 'refused', 'push', 'push', 'push', 'push']);
});

test('an object that the policy of this end does not let in is refused by its number, whatever the other end let out', (t) => {
  const inflow = new SteppedInflow(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  const effects = inflow.frame(begin(1), put(2, [pushed('one'), pushed('two')]));

  t.deepEqual(textsOf(effects), ['push begin', 'send refuse 3', 'refused', 'push state keep']);
});

test('a slice of which something was refused is told in full at its end, and not in step', (t) => {
  const inflow = new SteppedInflow(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  inflow.frame(begin(1), put(2, [pushed('one'), pushed('two')]), end(4, 2));

  t.like(inflow.works.at(-1)?.pushes, [{ kind: 'end', edge: '' }]);
});

test('a slice in step of which something is refused leaves step in that very commit, and is asked for anew, once', (t) => {
  const inflow = new SteppedInflow(aContext({ accepts: ({ key }) => !key.name.startsWith('bad') }));

  t.deepEqual(textsOf(inflow.frame(put(1, [pushed('bad-1')]))), ['send refuse 1', 'refused', 'push keep doubt', 'send restate']);
  t.deepEqual(textsOf(inflow.frame(put(2, [pushed('bad-2')]))), ['send refuse 2', 'refused', 'push keep']);
  inflow.frame(begin(3), put(4, [pushed('bad-1'), pushed('bad-2')]), end(6, 2));
  t.like(inflow.works.at(-1)?.pushes, [{ kind: 'end', edge: '' }]);

  t.deepEqual(textsOf(inflow.frame(remove(7, ['bad-1']))), ['push retract'], 'another one is lacking still');
  inflow.context = aContext();
  t.deepEqual(textsOf(inflow.frame(put(8, [pushed('bad-2')]))), ['push state', 'send restate']);
  inflow.frame(begin(9), put(10, [pushed('bad-2')]), end(11, 1));
  t.like(inflow.works.at(-1)?.pushes, [{ kind: 'end', edge: 'e' }]);
});

test('what was refused in a statement and is taken before its end lacks nothing', (t) => {
  const inflow = new SteppedInflow(aContext({ accepts: () => false }));
  inflow.frame(begin(1), put(2, [pushed('one')]));
  inflow.context = aContext();

  t.deepEqual(textsOf(inflow.frame(put(3, [pushed('one')]))), ['push state']);
  t.deepEqual(textsOf(inflow.frame(end(4, 2))), ['push end', 'send restate'], 'the other end knows what was refused alone');

  t.like(inflow.works.at(-1)?.pushes, [{ kind: 'end', edge: 'e' }]);
});

test('a report holds once everything before it is settled', (t) => {
  const inflow = new SteppedInflow();
  const report = { kind: 'report', sequence: 2, freshness: [], heartbeat: 1, isAll: false, isComplete: true } as const;

  t.deepEqual(textsOf(inflow.frame(put(1, [pushed('one')]), report)), ['push state', 'push']);
  t.deepEqual(textsOf(inflow.settle({ kind: 'written', revision: 1 })), ['send ack 1']);
  t.deepEqual(textsOf(inflow.settle()), ['send ack 2', 'reported']);
});

test('an object that cannot be read is refused by its number and kept as it was; the others go on', (t) => {
  const inflow = new SteppedInflow();
  const broken = { ...pushed('two'), body: new TextEncoder().encode('[') };

  t.deepEqual(textsOf(inflow.frame(begin(1), put(2, [pushed('one'), broken]))), [
    'push begin',
    'send refuse 3',
    'refused',
    'push state keep',
  ]);
});

const anyFrame = fc.constantFrom('begin', 'put', 'delete', 'end', 'wrong end', 'digest', 'dropped', 'declared', 'settle', 'undeclare');

test('whatever comes in whatever order: numbers rise, what is under way is counted right, and acknowledgements only name what came', (t) => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 40 }), (events) => {
      const inflow = new SteppedInflow(aContext({ typeOf: everyType, credit: { mutations: 1_000, bytes: 1_000_000 } }));
      let acknowledged = 0;
      for (const event of events) {
        const before = inflow.state.next;
        if (event === 'undeclare')
          inflow.context = { ...inflow.context, typeOf: inflow.context.typeOf === everyType ? () => undefined : everyType };
        else if (event !== 'settle') happen(inflow, event as SliceEvent);
        else if (inflow.works.length > 0)
          for (const effect of inflow.settle())
            if (effect.kind === 'send' && effect.frame.kind === 'ack') {
              t.true(effect.frame.sequence > acknowledged && effect.frame.sequence < inflow.state.next);
              acknowledged = effect.frame.sequence;
            }
        t.true(inflow.state.next >= before);
        t.is(
          inflow.state.unsettled.mutations,
          inflow.works.reduce((sum, { mutations }) => sum + mutations, 0),
        );
      }
      inflow.settleAll();
      t.deepEqual(inflow.state.unsettled, { mutations: 0, bytes: 0 });
    }),
  );
});

test('the digest of a slice that is not in step here is no alarm; the slice is asked for', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame({ kind: 'digest', sequence: 1, slice: exports, value: '0' });

  t.deepEqual(textsOf(inflow.settle({ kind: 'differs', digest: '1', isInStep: false })), ['send ack 1', 'send restate']);
});

test('what is under way of a slice that was asked for again is passed over up to its begin, its digest too', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(begin(1, instances));
  inflow.settleAll();
  inflow.context = aContext({ typeOf: everyType });
  inflow.take({ kind: 'declared' });

  const before = textsOf(inflow.frame(put(2, [pushed('one')], instances)));
  const behind = [textsOf(inflow.frame(begin(3, instances))), textsOf(inflow.frame(put(4, [pushed('one')], instances)))];

  t.deepEqual(before, ['push']);
  t.deepEqual(behind, [['push begin'], ['push state']]);
});

test('what is open costs nothing for the others: 20,000 slices are begun, parked and asked for in seconds, not in half a minute', (t) => {
  const count = 20_000;
  const slices = Array.from({ length: count }, (_, i) => aSlice({ shard: `s-${i}`, resource: 'instances', identity: 'A1' }));
  const credit = { mutations: 10 * count, bytes: 2 ** 40 };
  const inflow = new SteppedInflow(aContext({ credit, typeOf: () => undefined }));

  const startedAt = performance.now();
  for (const [i, slice] of slices.entries()) {
    inflow.frame(begin(i + 1, slice));
    inflow.settleAll();
  }
  for (let declared = 0; declared < 1_000; declared += 1) inflow.take({ kind: 'declared' });
  inflow.context = aContext({ credit, typeOf: everyType });
  const asked = inflow.take({ kind: 'declared' });
  for (const [i, slice] of slices.entries()) inflow.frame(begin(count + i + 1, slice));
  const elapsedMs = performance.now() - startedAt;

  t.is(asked.length, count);
  t.is(inflow.state.slices.size, count);
  t.true(elapsedMs < 6_000, `${elapsedMs} ms`);
});

test('a begin that compares is answered once it is durable: with what is held, and with nothing to who has not the slice', (t) => {
  for (const [outcome, answer] of [
    [{ kind: 'unchanged' }, 'summarise'],
    [{ kind: 'fenced', holder: undefined }, 'send summary 1'],
  ] as const) {
    const inflow = new SteppedInflow();

    t.deepEqual(textsOf(inflow.frame({ ...begin(1), compares: true })), ['push begin']);
    t.deepEqual(textsOf(inflow.settle(outcome)), ['send ack 1', answer]);
  }
  const notTaken = new SteppedInflow(aContext({ takes: () => false }));
  notTaken.frame({ ...begin(1), compares: true });
  t.deepEqual(textsOf(notTaken.settle()), ['send ack 1', 'send summary 1']);
});

test('an end names to the store the claim that it was given for', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame(begin(1), { ...end(2, 0), incarnation: 7 });

  t.like(inflow.works[1]?.pushes, [{ kind: 'end', incarnation: 7 }]);
});

test('an end that says that all was the same says so to the store', (t) => {
  const inflow = new SteppedInflow();
  inflow.frame({ ...begin(1), compares: true }, { ...end(2, 0), isSame: true });

  t.like(inflow.works[1]?.pushes, [{ kind: 'end', isSame: true }]);
});
