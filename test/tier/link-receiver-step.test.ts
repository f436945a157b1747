import test from 'ava';
import fc from 'fast-check';
import type { OpenSlice } from '../../src/tier/open-slices.js';
import { pushed } from '../intake/a-session.js';
import { aSlice } from '../support/pushes.js';
import {
  aContext,
  begin,
  digest,
  end,
  everyType,
  exports,
  instances,
  progress,
  put,
  remove,
  SteppedReceiver,
  textsOf,
} from './a-link-receiver.js';

type Phase = OpenSlice['phase'] | 'sent';
type SliceEvent = 'begin' | 'put' | 'delete' | 'end' | 'wrong end' | 'digest' | 'dropped' | 'declared';
type Row = Readonly<Record<SliceEvent, readonly [next: Phase, ...effects: string[]]>>;

/** What each event comes to in each phase of its slice; `sent`: by changes, which is every slice of which nothing is remembered. */
const table: Readonly<Record<Phase, Row>> = {
  sent: {
    begin: ['syncing', 'push begin'],
    put: ['sent', 'push upsert'],
    delete: ['sent', 'push retract'],
    end: ['sent', 'push end'],
    'wrong end': ['sent', 'push end'],
    digest: ['sent', 'push compare'],
    dropped: ['parked', 'send resync'],
    declared: ['sent'],
  },
  syncing: {
    begin: ['syncing', 'push begin'],
    put: ['syncing', 'push upsert'],
    delete: ['syncing', 'push retract'],
    end: ['sent', 'push end'],
    'wrong end': ['sent', 'push invalidate', 'send resync'],
    digest: ['syncing', 'push compare'],
    dropped: ['parked', 'send resync'],
    declared: ['syncing'],
  },
  parked: {
    begin: ['syncing', 'push begin'],
    put: ['parked', 'push'],
    delete: ['parked', 'push'],
    end: ['parked', 'push'],
    'wrong end': ['parked', 'push'],
    digest: ['parked', 'push'],
    dropped: ['parked', 'send resync'],
    declared: ['parked', 'send resync'],
  },
};

/** A link receiver whose slice is in that phase, with one object put since its begin; its types are all known. */
function inPhase(phase: Phase): SteppedReceiver {
  const linkReceiver = new SteppedReceiver(aContext({ typeOf: phase === 'parked' ? () => undefined : everyType }));
  if (phase === 'syncing') linkReceiver.frame(begin(1), put(2, [pushed('one')]));
  if (phase === 'parked') linkReceiver.frame(begin(1));
  linkReceiver.settleAll();
  linkReceiver.context = aContext({ typeOf: everyType });
  return linkReceiver;
}

function phaseOf(linkReceiver: SteppedReceiver): Phase {
  return linkReceiver.state.slices.of(exports)?.phase ?? 'sent';
}

function happen(linkReceiver: SteppedReceiver, event: SliceEvent) {
  const { next } = linkReceiver.state;
  switch (event) {
    case 'begin':
      return linkReceiver.frame(begin(next));
    case 'put':
      return linkReceiver.frame(put(next, [pushed('two')]));
    case 'delete':
      return linkReceiver.frame(remove(next, ['two']));
    case 'end':
      return linkReceiver.frame(end(next, 1));
    case 'wrong end':
      return linkReceiver.frame(end(next, 7));
    case 'digest':
      return linkReceiver.frame(digest(next));
    case 'dropped':
      return linkReceiver.take({ kind: 'dropped', slices: [exports] });
    case 'declared':
      return linkReceiver.take({ kind: 'declared' });
  }
}

for (const phase of ['sent', 'syncing', 'parked'] as const)
  test(`a slice that is ${phase} goes on as the table says`, (t) => {
    for (const event of ['begin', 'put', 'delete', 'end', 'wrong end', 'digest', 'dropped', 'declared'] as const) {
      const linkReceiver = inPhase(phase);

      const effects = happen(linkReceiver, event);

      t.deepEqual([phaseOf(linkReceiver), ...textsOf(effects)], [...table[phase][event]], event);
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
      const linkReceiver = new SteppedReceiver();

      t.deepEqual(textsOf(linkReceiver.frame(frame)), ['bye protocol'], `${frame.kind} ${sequence}`);
      t.is(linkReceiver.state.next, 1);
    }
  }
});

test('numbers count mutations: those of a frame stand for all that is in it', (t) => {
  const linkReceiver = new SteppedReceiver();

  linkReceiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three', 'four', 'five']), end(7, 2), progress(8));

  t.is(linkReceiver.state.next, 9);
  t.deepEqual(
    linkReceiver.works.map(({ last }) => last),
    [1, 3, 6, 7, 8],
  );
});

test('the position of a put or delete is reached with what it came with, whatever becomes of that', (t) => {
  const open = new SteppedReceiver();
  t.deepEqual(textsOf(open.frame({ ...put(1, [pushed('one')]), position: '9' })), ['push upsert reach']);
  t.deepEqual(textsOf(open.frame({ ...remove(2, ['one']), position: '10' })), ['push retract reach']);
  t.deepEqual(
    open.works.map(({ pushes }) => pushes.at(-1)),
    ['9', '10'].map((position) => ({ kind: 'reach', neighbour: 'parent', position })),
  );

  const closed = new SteppedReceiver(aContext({ takes: () => false }));
  t.deepEqual(textsOf(closed.frame({ ...put(1, [pushed('one')]), position: '9' })), ['send refuse 1', 'refused', 'push reach']);

  const parked = new SteppedReceiver(aContext({ typeOf: () => undefined, holds: () => false }));
  t.deepEqual(textsOf(parked.frame({ ...put(1, [pushed('one')]), position: '9' })), ['parked', 'push reach']);
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['again']);
  parked.settle();
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['push reach']);
});

test('X2: what is settled is acknowledged up to its last number, and frees its credit', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(put(1, [pushed('one'), pushed('two')]), remove(3, ['one']));

  t.deepEqual(textsOf(linkReceiver.settle({ kind: 'written', revision: 3 })), ['send ack 2']);
  t.is(linkReceiver.state.unsettled.mutations, 1);
  t.deepEqual(textsOf(linkReceiver.settle()), ['send ack 3']);
  t.deepEqual(linkReceiver.state.unsettled, { mutations: 0, bytes: 0 });
});

test('X3: what is fenced, unbegun or differs is acknowledged all the same; what can be mended is asked for anew', (t) => {
  const fenced = new SteppedReceiver();
  fenced.frame(put(1, [pushed('one')]));
  t.deepEqual(textsOf(fenced.settle({ kind: 'fenced', holder: undefined })), ['send ack 1']);

  const unbegun = new SteppedReceiver();
  unbegun.frame(end(1, 0));
  t.deepEqual(textsOf(unbegun.settle({ kind: 'unbegun' })), ['send ack 1', 'send resync']);

  const differs = new SteppedReceiver();
  differs.frame(digest(1));
  t.deepEqual(textsOf(differs.settle({ kind: 'differs', digest: '1', isCurrent: true })), ['send ack 1', 'differs', 'send resync']);
});

test('a store that takes nothing ends the connection, without an acknowledgement', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(linkReceiver.settle({ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'full' } })), [
    'bye unavailable',
  ]);
});

test('more than there was credit for, or than a frame may hold, ends the connection', (t) => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `o-${i}`);
  const tooMany = new SteppedReceiver();
  t.deepEqual(textsOf(tooMany.frame(remove(1, names(11)))), ['bye protocol']);

  const unsettled = new SteppedReceiver();
  unsettled.frame(remove(1, names(10)), remove(11, names(9)), progress(20));
  t.deepEqual(textsOf(unsettled.frame(progress(21))), ['bye protocol']);

  const settled = new SteppedReceiver();
  settled.frame(remove(1, names(10)), remove(11, names(10)));
  settled.settle();
  t.deepEqual(textsOf(settled.frame(progress(21))), ['push reach']);

  const heavy = new SteppedReceiver(aContext({ credit: { mutations: 20, bytes: 100 } }));
  t.deepEqual(textsOf(heavy.frame(put(1, [pushed('one'), pushed('two')]))), ['bye protocol']);
});

test('X4: a type that nobody declares parks its slice, once, behind what might declare it; others go on', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(linkReceiver.frame(begin(2, instances))), ['again']);
  t.is(linkReceiver.state.next, 2);
  linkReceiver.settleAll();
  t.deepEqual(textsOf(linkReceiver.frame(begin(2, instances))), ['parked', 'push invalidate']);
  linkReceiver.settleAll();
  t.deepEqual(textsOf(linkReceiver.frame(put(3, [pushed('one')], instances))), ['push']);
  t.deepEqual(textsOf(linkReceiver.settle()), ['send ack 3']);
  t.deepEqual(textsOf(linkReceiver.frame(put(4, [pushed('two')]))), ['push upsert']);
});

test('what waited for its declaration is asked for once it is there', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(begin(1, instances));
  linkReceiver.settleAll();
  t.deepEqual(linkReceiver.take({ kind: 'declared' }), []);

  linkReceiver.context = aContext({ typeOf: everyType });

  t.deepEqual(textsOf(linkReceiver.take({ kind: 'declared' })), ['send resync']);
  t.deepEqual(linkReceiver.take({ kind: 'declared' }), []);
});

test('what the policy of this end does not take is refused one by one, counted, and removes nothing', (t) => {
  const linkReceiver = new SteppedReceiver(aContext({ takes: () => false }));

  const effects = linkReceiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three']), digest(5), end(6, 2));

  t.deepEqual(textsOf(effects), ['push', 'send refuse 2', 'refused', 'send refuse 3', 'refused', 'push', 'push', 'push', 'push']);
});

test('an object that the policy of this end does not let in is refused by its number, whatever the other end let out', (t) => {
  const linkReceiver = new SteppedReceiver(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  const effects = linkReceiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]));

  t.deepEqual(textsOf(effects), ['push begin', 'send refuse 3', 'refused', 'push upsert keep']);
});

test('a slice of which something was refused is sent in full at its end, and not current', (t) => {
  const linkReceiver = new SteppedReceiver(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  linkReceiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), end(4, 2));

  t.like(linkReceiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: '' }]);
});

test('a slice current of which something is refused becomes stale in that very commit, and is asked for anew, once', (t) => {
  const linkReceiver = new SteppedReceiver(aContext({ accepts: ({ key }) => !key.name.startsWith('bad') }));

  t.deepEqual(textsOf(linkReceiver.frame(put(1, [pushed('bad-1')]))), ['send refuse 1', 'refused', 'push keep invalidate', 'send resync']);
  t.deepEqual(textsOf(linkReceiver.frame(put(2, [pushed('bad-2')]))), ['send refuse 2', 'refused', 'push keep']);
  linkReceiver.frame(begin(3), put(4, [pushed('bad-1'), pushed('bad-2')]), end(6, 2));
  t.like(linkReceiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: '' }]);

  t.deepEqual(textsOf(linkReceiver.frame(remove(7, ['bad-1']))), ['push retract'], 'another one is lacking still');
  linkReceiver.context = aContext();
  t.deepEqual(textsOf(linkReceiver.frame(put(8, [pushed('bad-2')]))), ['push upsert', 'send resync']);
  linkReceiver.frame(begin(9), put(10, [pushed('bad-2')]), end(11, 1));
  t.like(linkReceiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: 'e' }]);
});

test('what was refused in a sync and is taken before its end lacks nothing', (t) => {
  const linkReceiver = new SteppedReceiver(aContext({ accepts: () => false }));
  linkReceiver.frame(begin(1), put(2, [pushed('one')]));
  linkReceiver.context = aContext();

  t.deepEqual(textsOf(linkReceiver.frame(put(3, [pushed('one')]))), ['push upsert']);
  t.deepEqual(textsOf(linkReceiver.frame(end(4, 2))), ['push end', 'send resync'], 'the other end knows what was refused alone');

  t.like(linkReceiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: 'e' }]);
});

test('a report holds once everything before it is settled', (t) => {
  const linkReceiver = new SteppedReceiver();
  const report = { kind: 'report', sequence: 2, freshness: [], heartbeat: 1, isAll: false, isComplete: true } as const;

  t.deepEqual(textsOf(linkReceiver.frame(put(1, [pushed('one')]), report)), ['push upsert', 'push']);
  t.deepEqual(textsOf(linkReceiver.settle({ kind: 'written', revision: 1 })), ['send ack 1']);
  t.deepEqual(textsOf(linkReceiver.settle()), ['send ack 2', 'reported']);
});

test('an object that cannot be read is refused by its number and kept as it was; the others go on', (t) => {
  const linkReceiver = new SteppedReceiver();
  const broken = { ...pushed('two'), body: new TextEncoder().encode('[') };

  t.deepEqual(textsOf(linkReceiver.frame(begin(1), put(2, [pushed('one'), broken]))), [
    'push begin',
    'send refuse 3',
    'refused',
    'push upsert keep',
  ]);
});

const anyFrame = fc.constantFrom('begin', 'put', 'delete', 'end', 'wrong end', 'digest', 'dropped', 'declared', 'settle', 'undeclare');

test('whatever comes in whatever order: numbers rise, what is under way is counted right, and acknowledgements only name what came', (t) => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 40 }), (events) => {
      const linkReceiver = new SteppedReceiver(aContext({ typeOf: everyType, credit: { mutations: 1_000, bytes: 1_000_000 } }));
      let acknowledged = 0;
      for (const event of events) {
        const before = linkReceiver.state.next;
        if (event === 'undeclare')
          linkReceiver.context = {
            ...linkReceiver.context,
            typeOf: linkReceiver.context.typeOf === everyType ? () => undefined : everyType,
          };
        else if (event !== 'settle') happen(linkReceiver, event as SliceEvent);
        else if (linkReceiver.works.length > 0)
          for (const effect of linkReceiver.settle())
            if (effect.kind === 'send' && effect.frame.kind === 'ack') {
              t.true(effect.frame.sequence > acknowledged && effect.frame.sequence < linkReceiver.state.next);
              acknowledged = effect.frame.sequence;
            }
        t.true(linkReceiver.state.next >= before);
        t.is(
          linkReceiver.state.unsettled.mutations,
          linkReceiver.works.reduce((sum, { mutations }) => sum + mutations, 0),
        );
      }
      linkReceiver.settleAll();
      t.deepEqual(linkReceiver.state.unsettled, { mutations: 0, bytes: 0 });
    }),
  );
});

test('the digest of a slice that is not current here is no alarm; the slice is asked for', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame({ kind: 'digest', sequence: 1, slice: exports, value: '0' });

  t.deepEqual(textsOf(linkReceiver.settle({ kind: 'differs', digest: '1', isCurrent: false })), ['send ack 1', 'send resync']);
});

test('what is under way of a slice that was asked for again is passed over up to its begin, its digest too', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(begin(1, instances));
  linkReceiver.settleAll();
  linkReceiver.context = aContext({ typeOf: everyType });
  linkReceiver.take({ kind: 'declared' });

  const before = textsOf(linkReceiver.frame(put(2, [pushed('one')], instances)));
  const behind = [textsOf(linkReceiver.frame(begin(3, instances))), textsOf(linkReceiver.frame(put(4, [pushed('one')], instances)))];

  t.deepEqual(before, ['push']);
  t.deepEqual(behind, [['push begin'], ['push upsert']]);
});

test('what is open costs nothing for the others: 20,000 slices are begun, parked and asked for in seconds, not in half a minute', (t) => {
  const count = 20_000;
  const slices = Array.from({ length: count }, (_, i) => aSlice({ shard: `s-${i}`, resource: 'instances', identity: 'A1' }));
  const credit = { mutations: 10 * count, bytes: 2 ** 40 };
  const linkReceiver = new SteppedReceiver(aContext({ credit, typeOf: () => undefined }));

  const startedAt = performance.now();
  for (const [i, slice] of slices.entries()) {
    linkReceiver.frame(begin(i + 1, slice));
    linkReceiver.settleAll();
  }
  for (let declared = 0; declared < 1_000; declared += 1) linkReceiver.take({ kind: 'declared' });
  linkReceiver.context = aContext({ credit, typeOf: everyType });
  const asked = linkReceiver.take({ kind: 'declared' });
  for (const [i, slice] of slices.entries()) linkReceiver.frame(begin(count + i + 1, slice));
  const elapsedMs = performance.now() - startedAt;

  t.is(asked.length, count);
  t.is(linkReceiver.state.slices.size, count);
  t.true(elapsedMs < 6_000, `${elapsedMs} ms`);
});

test('a begin that compares is answered once it is durable: with what is held, and with nothing to who has not the slice', (t) => {
  for (const [outcome, answer] of [
    [{ kind: 'unchanged' }, 'summarise'],
    [{ kind: 'fenced', holder: undefined }, 'send summary 1'],
  ] as const) {
    const linkReceiver = new SteppedReceiver();

    t.deepEqual(textsOf(linkReceiver.frame({ ...begin(1), compares: true })), ['push begin']);
    t.deepEqual(textsOf(linkReceiver.settle(outcome)), ['send ack 1', answer]);
  }
  const notTaken = new SteppedReceiver(aContext({ takes: () => false }));
  notTaken.frame({ ...begin(1), compares: true });
  t.deepEqual(textsOf(notTaken.settle()), ['send ack 1', 'send summary 1']);
});

test('an end names to the store the claim that it was given for', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame(begin(1), { ...end(2, 0), term: 7 });

  t.like(linkReceiver.works[1]?.pushes, [{ kind: 'end', term: 7 }]);
});

test('an end that says that all was the same says so to the store', (t) => {
  const linkReceiver = new SteppedReceiver();
  linkReceiver.frame({ ...begin(1), compares: true }, { ...end(2, 0), isSame: true });

  t.like(linkReceiver.works[1]?.pushes, [{ kind: 'end', isSame: true }]);
});
