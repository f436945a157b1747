import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { noBuckets } from '../../../src/domain/slices/buckets.js';
import type { PushOutcome } from '../../../src/domain/push.js';
import type { FrameOf } from '../../../src/frames/frame.js';
import { formatSlice } from '../../../src/domain/slice.js';
import type { ReceiverSlice } from '../../../src/intake/push/receiver-slices.js';
import {
  aContext,
  apiExports,
  aPusherContext,
  aSlice,
  begin,
  clusterBegin,
  clusterKeep,
  clusterEnd,
  digest,
  end,
  everyType,
  instances,
  progress,
  pushed,
  put,
  remove,
  schemas,
  SteppedReceiver,
  textsOf,
} from '../../support/intake/a-receiver.js';

type Sender = 'pusher' | 'link';
type Phase = ReceiverSlice['phase'] | 'unknown';
type SliceEvent =
  | 'begin'
  | 'put'
  | 'delete'
  | 'end'
  | 'wrong end'
  | 'cluster begin'
  | 'cluster end'
  | 'digest'
  | 'dropped'
  | 'declared'
  | 'unbegun';
type Row = Readonly<Partial<Record<SliceEvent, readonly [next: Phase, ...effects: string[]]>>>;

/** For either sender. */
const stale: Row = {
  begin: ['syncing', 'push begin'],
  put: ['stale', 'push', 'send resync'],
  delete: ['stale', 'push', 'send resync'],
  end: ['stale', 'push', 'send resync'],
  'wrong end': ['stale', 'push', 'send resync'],
  dropped: ['stale', 'send resync'],
  declared: ['stale', 'send resync'],
};

/** The next phase and the effects of each event in each phase of its slice. */
const tables: Readonly<Record<Sender, Readonly<Partial<Record<Phase, Row>>>>> = {
  link: {
    unknown: {
      begin: ['syncing', 'push begin'],
      put: ['unknown', 'push upsert'],
      delete: ['unknown', 'push retract'],
      end: ['unknown', 'push end'],
      'wrong end': ['unknown', 'push end'],
      digest: ['unknown', 'push compare'],
      dropped: ['stale', 'push invalidate', 'send resync'],
      declared: ['unknown'],
      unbegun: ['unknown', 'send ack 1', 'send resync'],
    },
    syncing: {
      begin: ['syncing', 'push begin'],
      put: ['syncing', 'push upsert'],
      delete: ['syncing', 'push retract'],
      end: ['unknown', 'push end'],
      'wrong end': ['unknown', 'push invalidate', 'send resync'],
      digest: ['syncing', 'push compare'],
      dropped: ['stale', 'push invalidate', 'send resync'],
      declared: ['syncing'],
    },
    stale: { ...stale, digest: ['stale', 'push', 'send resync'] },
  },
  pusher: {
    unknown: {
      begin: ['syncing', 'push begin'],
      'cluster begin': ['stale', 'push invalidate', 'send resync'],
      'cluster end': ['stale', 'push invalidate', 'send resync'],
      put: ['stale', 'push invalidate', 'send resync'],
      delete: ['stale', 'push invalidate', 'send resync'],
      end: ['stale', 'push invalidate', 'send resync'],
      dropped: ['unknown'],
      declared: ['unknown'],
    },
    synced: {
      begin: ['syncing', 'push begin'],
      'cluster begin': ['synced', 'push begin'],
      'cluster end': ['stale', 'push invalidate', 'send resync'],
      put: ['synced', 'push upsert'],
      delete: ['synced', 'push retract'],
      end: ['stale', 'push invalidate', 'send resync'],
      dropped: ['stale', 'push invalidate', 'send resync'],
      declared: ['synced'],
      unbegun: ['stale', 'push invalidate', 'send ack 1', 'send resync'],
    },
    syncing: {
      begin: ['syncing', 'push begin'],
      'cluster begin': ['syncing', 'push begin'],
      'cluster end': ['stale', 'push invalidate', 'send resync'],
      put: ['syncing', 'push upsert'],
      delete: ['syncing', 'push retract'],
      end: ['synced', 'push end'],
      'wrong end': ['stale', 'push invalidate', 'send resync'],
      dropped: ['stale', 'push invalidate', 'send resync'],
      declared: ['syncing'],
    },
    stale: {
      ...stale,
      'cluster begin': ['stale', 'push', 'send resync'],
      'cluster end': ['stale', 'push', 'send resync'],
    },
  },
};

/**
 * A receiver whose slice is in that phase, with one object put since its begin. `stale`: the type
 * of the slice was gone, and is back.
 */
function inPhase(sender: Sender, phase: Phase): SteppedReceiver {
  const contextOf = sender === 'link' ? aContext : aPusherContext;
  const receiver = new SteppedReceiver(
    contextOf({ typeOf: phase === 'stale' ? () => undefined : everyType }),
    phase === 'synced' || (phase === 'stale' && sender === 'pusher') ? [apiExports] : [],
  );
  if (phase === 'syncing') receiver.frame(begin(1), put(2, [pushed('one')]));
  if (phase === 'stale') receiver.frame(begin(1));
  receiver.settleAll();
  receiver.context = contextOf({ typeOf: everyType });
  return receiver;
}

function phaseOf(receiver: SteppedReceiver): Phase {
  return receiver.state.slices.of(apiExports)?.phase ?? 'unknown';
}

function happen(receiver: SteppedReceiver, event: SliceEvent) {
  const { next } = receiver.state;
  switch (event) {
    case 'begin':
      return receiver.frame(begin(next));
    case 'put':
      return receiver.frame(put(next, [pushed('two')]));
    case 'delete':
      return receiver.frame(remove(next, ['two']));
    case 'end':
      return receiver.frame(end(next, 1));
    case 'wrong end':
      return receiver.frame(end(next, 7));
    case 'cluster begin':
      return receiver.frame(clusterBegin(next));
    case 'cluster end':
      return receiver.frame(clusterEnd(next, 0));
    case 'digest':
      return receiver.frame(digest(next));
    case 'dropped':
      return receiver.take({ kind: 'dropped', slices: [apiExports] });
    case 'declared':
      return receiver.take({ kind: 'declared' });
    case 'unbegun': {
      const work = { pushes: [], slice: apiExports, last: 1, mutations: 0, bytes: 0, compares: false };
      return receiver.take({ kind: 'decided', work, outcomes: [{ kind: 'unbegun' }] });
    }
  }
}

for (const sender of ['link', 'pusher'] as const)
  for (const phase of ['unknown', 'synced', 'syncing', 'stale'] as const)
    for (const [event, expected] of Object.entries(tables[sender][phase] ?? {}))
      test(`a ${sender}'s slice that is ${phase} goes on as the table says: ${event}`, (t) => {
        const receiver = inPhase(sender, phase);

        const effects = happen(receiver, event as SliceEvent);

        t.deepEqual([phaseOf(receiver), ...textsOf(effects)], [...expected]);
      });

test('RECEIVE-1: a number that is not the next one ends the connection, and its frame has no effect', (t) => {
  for (const sequence of [0, 2, -1, 1.5, Number.MAX_SAFE_INTEGER]) {
    for (const frame of [
      put(sequence, [pushed('one')]),
      remove(sequence, ['one']),
      begin(sequence),
      end(sequence, 0),
      digest(sequence),
      progress(sequence),
    ]) {
      const receiver = new SteppedReceiver();

      t.deepEqual(textsOf(receiver.frame(frame)), ['bye protocol'], `${frame.kind} ${sequence}`);
      t.is(receiver.state.next, 1);
    }
  }
});

test('logical clusters of a slice are synced separately, may overlap, and each counts its own objects', (t) => {
  const receiver = SteppedReceiver.ofPusher();

  const effects = receiver.frame(
    clusterBegin(1, 'acme'),
    clusterBegin(2, 'bold'),
    put(3, [pushed('one'), pushed('two', { cluster: 'bold' }), pushed('three', { cluster: 'cool' })]),
    clusterEnd(6, 1, 'bold'),
    put(7, [pushed('four')]),
    clusterEnd(8, 2, 'acme'),
  );

  t.deepEqual(textsOf(effects), ['push begin', 'push begin', 'push upsert upsert upsert', 'push end', 'push upsert', 'push end']);
  t.like(receiver.works[3]?.pushes, [{ kind: 'end', cluster: 'bold', filterHash: '' }]);
  t.is(phaseOf(receiver), 'synced');
});

for (const [what, frames] of [
  ['other objects than were counted', [clusterBegin(1), put(2, [pushed('one')]), clusterEnd(3, 2)]],
  ['an end of another logical cluster', [clusterBegin(1), clusterEnd(2, 0, 'bold')]],
  ['a second end', [clusterBegin(1), clusterEnd(2, 0), clusterEnd(3, 0)]],
  ['a begin of the slice in between', [clusterBegin(1), begin(2), clusterEnd(3, 0)]],
] as const)
  test(`after ${what} of a logical cluster nothing is removed, and the cache asks for a resync of the slice`, (t) => {
    const receiver = SteppedReceiver.ofPusher();

    const effects = textsOf(receiver.frame(...frames));

    t.deepEqual(effects.slice(-2), ['push invalidate', 'send resync']);
    t.is(phaseOf(receiver), 'stale');
  });

test('a logical cluster that begins again counts from 0, and the end of the slice leaves it open', (t) => {
  const receiver = SteppedReceiver.ofPusher();
  const syncing = receiver.frame(begin(1), clusterBegin(2), put(3, [pushed('one')]), clusterBegin(4), put(5, [pushed('two')]), end(6, 2));
  t.deepEqual(textsOf(syncing).slice(-1), ['push end']);

  t.deepEqual(textsOf(receiver.frame(clusterEnd(7, 1))), ['push end']);
});

test('a kept logical cluster is a begin to the store, unless it is under way; it may begin, but not end without a begin', (t) => {
  const receiver = SteppedReceiver.ofPusher();
  const syncing = receiver.frame(
    begin(1),
    clusterBegin(2, 'acme'),
    clusterKeep(3, 'acme'),
    clusterKeep(4, 'bold'),
    clusterEnd(5, 0, 'acme'),
    end(6, 0),
  );
  t.deepEqual(textsOf(syncing), ['push begin', 'push begin', 'push', 'push begin', 'push end', 'push end']);
  t.like(receiver.works[3]?.pushes, [{ kind: 'begin', cluster: 'bold' }]);
  t.is(phaseOf(receiver), 'synced');

  t.deepEqual(textsOf(receiver.frame(clusterBegin(7, 'bold'), clusterEnd(8, 0, 'bold'))), ['push begin', 'push end']);
  t.deepEqual(textsOf(receiver.frame(clusterKeep(9, 'cool'), clusterEnd(10, 0, 'cool'))).slice(-2), ['push invalidate', 'send resync']);
});

test('logical clusters that are kept and under way share one bound', (t) => {
  const receiver = SteppedReceiver.ofPusher([apiExports]);
  const take = (frame: FrameOf<'clusterBegin' | 'clusterKeep'>) => {
    const effects = textsOf(receiver.frame(frame));
    receiver.settleAll();
    return effects;
  };
  for (let sequence = 1; sequence <= 50_000; sequence += 1)
    take(sequence % 2 === 0 ? clusterKeep(sequence, `c${sequence}`) : clusterBegin(sequence, `c${sequence}`));

  t.deepEqual(take(clusterKeep(50_001, 'c2')), ['push begin'], 'once more');
  t.deepEqual(take(clusterBegin(50_002, 'c2')), ['push begin'], 'one that was kept begins');
  t.deepEqual(take(clusterKeep(50_003, 'another')), ['bye protocol']);
});

test('the bound of logical clusters under way is shared by all slices', (t) => {
  const receiver = SteppedReceiver.ofPusher([apiExports, schemas]);
  const take = (sequence: number, slice = apiExports) => {
    const effects = receiver.frame(clusterBegin(sequence, `c${sequence}`, slice));
    receiver.settleAll();
    return effects;
  };
  for (let sequence = 1; sequence <= 50_000; sequence += 1) take(sequence, sequence % 2 === 0 ? apiExports : schemas);

  t.deepEqual(textsOf(receiver.frame(clusterBegin(50_001, 'c1', schemas))), ['push begin'], 'one of them may begin again');
  receiver.settleAll();
  t.deepEqual(textsOf(receiver.frame(begin(50_002, schemas))), ['push begin'], 'a begin gives up those of its slice');
  receiver.settleAll();
  t.deepEqual(textsOf(take(50_003)), ['push begin']);
  for (let sequence = 50_004; sequence <= 75_002; sequence += 1) take(sequence);
  t.deepEqual(textsOf(take(75_003)), ['bye protocol']);
});

test('a slice that its pusher no longer names stops being synced, in the store too', (t) => {
  const receiver = SteppedReceiver.ofPusher([apiExports, schemas]);
  receiver.frame(clusterBegin(1));
  receiver.settleAll();

  t.deepEqual(textsOf(receiver.take({ kind: 'named', slices: new Set([formatSlice(apiExports)]) })), []);
  t.deepEqual(textsOf(receiver.take({ kind: 'named', slices: new Set([formatSlice(schemas)]) })), ['push invalidate']);
  t.deepEqual(textsOf(receiver.settle()), []);
  t.deepEqual(textsOf(receiver.take({ kind: 'named', slices: new Set() })), []);
});

test('sequence numbers count mutations: a frame uses one for each mutation in it', (t) => {
  const receiver = new SteppedReceiver();

  receiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three', 'four', 'five']), end(7, 2), progress(8));

  t.is(receiver.state.next, 9);
  t.deepEqual(
    receiver.works.map(({ last }) => last),
    [1, 3, 6, 7, 8],
  );
});

test('the position of a put or delete is stored with its objects, or without them if they are refused', (t) => {
  const open = new SteppedReceiver();
  t.deepEqual(textsOf(open.frame({ ...put(1, [pushed('one')]), position: '9' })), ['push upsert reach']);
  t.deepEqual(textsOf(open.frame({ ...remove(2, ['one']), position: '10' })), ['push retract reach']);
  t.deepEqual(
    open.works.map(({ pushes }) => pushes.at(-1)),
    ['9', '10'].map((position) => ({ kind: 'reach', neighbour: 'parent', position })),
  );

  const closed = new SteppedReceiver(aContext({ covers: () => false }));
  t.deepEqual(textsOf(closed.frame({ ...put(1, [pushed('one')]), position: '9' })), ['send refuse 1', 'refused', 'push reach']);

  const parked = new SteppedReceiver(aContext({ typeOf: () => undefined, holds: () => false }));
  t.deepEqual(textsOf(parked.frame({ ...put(1, [pushed('one')]), position: '9' })), ['parked', 'push reach']);
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['again']);
  parked.settle();
  t.deepEqual(textsOf(parked.frame({ ...put(2, [pushed('one')]), position: '10' })), ['push reach']);
});

test('RECEIVE-2: a settled mutation is acknowledged up to its last number, and frees its credit', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(put(1, [pushed('one'), pushed('two')]), remove(3, ['one']));

  t.deepEqual(textsOf(receiver.settle({ kind: 'written', revision: 3 })), ['send ack 2']);
  t.is(receiver.state.undecided.mutations, 1);
  t.deepEqual(textsOf(receiver.settle()), ['send ack 3']);
  t.deepEqual(receiver.state.undecided, { mutations: 0, bytes: 0 });
});

test('pushes of a link that are fenced, unbegun or differ are acknowledged too, and unbegun or differing slices are resynced', (t) => {
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

test('a store that is unavailable ends the connection without an acknowledgement', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(receiver.settle({ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'full' } })), [
    'bye unavailable',
  ]);
});

test('a frame beyond the credit or beyond the bounds of a frame ends the connection', (t) => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `o-${i}`);
  const tooMany = new SteppedReceiver();
  t.deepEqual(textsOf(tooMany.frame(remove(1, names(11)))), ['bye protocol']);

  const undecided = new SteppedReceiver();
  undecided.frame(remove(1, names(10)), remove(11, names(9)), progress(20));
  t.deepEqual(textsOf(undecided.frame(progress(21))), ['bye protocol']);

  const settled = new SteppedReceiver();
  settled.frame(remove(1, names(10)), remove(11, names(10)));
  settled.settle();
  t.deepEqual(textsOf(settled.frame(progress(21))), ['push reach']);

  const heavy = new SteppedReceiver(aContext({ credit: { mutations: 20, bytes: 100 } }));
  t.deepEqual(textsOf(heavy.frame(put(1, [pushed('one'), pushed('two')]))), ['bye protocol']);
});

test('RECEIVE-4: a slice of an undeclared type waits until pushes that may declare it are settled, then is parked; other slices go on', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(receiver.frame(begin(2, instances))), ['again']);
  t.is(receiver.state.next, 2);
  receiver.settleAll();
  t.deepEqual(textsOf(receiver.frame(begin(2, instances))), ['parked', 'push invalidate']);
  receiver.settleAll();
  t.deepEqual(textsOf(receiver.frame(put(3, [pushed('one')], instances))), ['push']);
  t.deepEqual(textsOf(receiver.settle()), ['send ack 3']);
  t.deepEqual(textsOf(receiver.frame(put(4, [pushed('two')]))), ['push upsert']);
});

test('a parked slice is resynced once its type is declared', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(begin(1, instances));
  receiver.settleAll();
  t.deepEqual(receiver.take({ kind: 'declared' }), []);

  receiver.context = aContext({ typeOf: everyType });

  t.deepEqual(textsOf(receiver.take({ kind: 'declared' })), ['send resync']);
  t.deepEqual(receiver.take({ kind: 'declared' }), []);
});

test('objects of a slice that this end does not take are refused one by one and counted, and nothing is removed', (t) => {
  const receiver = new SteppedReceiver(aContext({ covers: () => false }));

  const effects = receiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), remove(4, ['three']), digest(5), end(6, 2));

  t.deepEqual(textsOf(effects), ['push', 'send refuse 2', 'refused', 'send refuse 3', 'refused', 'push', 'push', 'push', 'push']);
});

test('an object that this end’s policy does not accept is refused by its number, whatever the other end offers', (t) => {
  const receiver = new SteppedReceiver(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  const effects = receiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]));

  t.deepEqual(textsOf(effects), ['push begin', 'send refuse 3', 'refused', 'push upsert keep']);
});

test('a slice with a refused object does not become current at its end', (t) => {
  const receiver = new SteppedReceiver(aContext({ accepts: ({ key }) => key.name !== 'two' }));

  receiver.frame(begin(1), put(2, [pushed('one'), pushed('two')]), end(4, 2));

  t.like(receiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: '' }]);
});

test('a current slice with a refused object becomes stale in the same commit, and is asked for once', (t) => {
  const receiver = new SteppedReceiver(aContext({ accepts: ({ key }) => !key.name.startsWith('bad') }));

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('bad-1')]))), ['send refuse 1', 'refused', 'push keep invalidate', 'send resync']);
  t.deepEqual(textsOf(receiver.frame(put(2, [pushed('bad-2')]))), ['send refuse 2', 'refused', 'push keep']);
  receiver.frame(begin(3), put(4, [pushed('bad-1'), pushed('bad-2')]), end(6, 2));
  t.like(receiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: '' }]);

  t.deepEqual(textsOf(receiver.frame(remove(7, ['bad-1']))), ['push retract'], 'another one is lacking still');
  receiver.context = aContext();
  t.deepEqual(textsOf(receiver.frame(put(8, [pushed('bad-2')]))), ['push upsert', 'send resync']);
  receiver.frame(begin(9), put(10, [pushed('bad-2')]), end(11, 1));
  t.like(receiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: 'e' }]);
});

test('an object that is refused in a sync and accepted before its end is not missing', (t) => {
  const receiver = new SteppedReceiver(aContext({ accepts: () => false }));
  receiver.frame(begin(1), put(2, [pushed('one')]));
  receiver.context = aContext();

  t.deepEqual(textsOf(receiver.frame(put(3, [pushed('one')]))), ['push upsert']);
  t.deepEqual(textsOf(receiver.frame(end(4, 2))), ['push end', 'send resync'], 'the other end knows what was refused alone');

  t.like(receiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: 'e' }]);
});

test('a report takes effect once everything before it is settled', (t) => {
  const receiver = new SteppedReceiver();
  const report = { kind: 'report', sequence: 2, freshness: [], heartbeat: 1, isAll: false, isComplete: true } as const;

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('one')]), report)), ['push upsert', 'push']);
  t.deepEqual(textsOf(receiver.settle({ kind: 'written', revision: 1 })), ['send ack 1']);
  t.deepEqual(textsOf(receiver.settle()), ['send ack 2', 'reported']);
});

test('an object that cannot be parsed is refused by its number and kept as it was; the others go on', (t) => {
  const receiver = new SteppedReceiver();
  const broken = { ...pushed('two'), body: new TextEncoder().encode('[') };

  t.deepEqual(textsOf(receiver.frame(begin(1), put(2, [pushed('one'), broken]))), [
    'push begin',
    'send refuse 3',
    'refused',
    'push upsert keep',
  ]);
});

const anyEvent = fc.record({
  what: fc.constantFrom(...(['begin', 'put', 'delete', 'end', 'wrong end', 'dropped', 'declared', 'settle', 'undeclare', 'gap'] as const)),
  outcome: fc.constantFrom<PushOutcome>(
    { kind: 'written', revision: 1 },
    { kind: 'unchanged' },
    { kind: 'unbegun' },
    { kind: 'fenced', holder: undefined },
    { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'full' } },
  ),
});

for (const contextOf of [aContext, aPusherContext])
  test(`whatever a ${contextOf().by.kind} sends: numbers rise, undecided mutations are counted, and only received ones are acknowledged`, (t) => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const receiver = new SteppedReceiver(contextOf({ typeOf: everyType, credit: { mutations: 1_000, bytes: 1_000_000 } }));
        let acknowledged = 0;
        for (const { what, outcome } of events) {
          const { next } = receiver.state;
          const effects =
            what === 'undeclare'
              ? []
              : what === 'gap'
                ? receiver.frame(begin(next + 1))
                : what !== 'settle'
                  ? happen(receiver, what)
                  : receiver.works.length > 0
                    ? receiver.settle(outcome)
                    : [];
          if (what === 'undeclare')
            receiver.context = { ...receiver.context, typeOf: receiver.context.typeOf === everyType ? () => undefined : everyType };
          t.true(what !== 'gap' || effects.some(({ kind }) => kind === 'bye'));
          if (effects.some(({ kind }) => kind === 'bye' || kind === 'fenced')) return;
          for (const effect of effects)
            if (effect.kind === 'send' && effect.frame.kind === 'ack') {
              t.true(effect.frame.sequence > acknowledged && effect.frame.sequence < receiver.state.next);
              acknowledged = effect.frame.sequence;
            }
          t.true(receiver.state.next >= next);
          const underWay = receiver.works.reduce((sum, { mutations }) => sum + mutations, 0);
          t.is(receiver.state.undecided.mutations, underWay);
        }
        receiver.settleAll();
        t.deepEqual(receiver.state.undecided, { mutations: 0, bytes: 0 });
      }),
      { numRuns: rounds(500) },
    );
  });

test('a digest that differs for a slice that is not current is no alarm; the slice is resynced', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame({ kind: 'digest', sequence: 1, slice: apiExports, value: '0' });

  t.deepEqual(textsOf(receiver.settle({ kind: 'differs', digest: '1', isCurrent: false })), ['send ack 1', 'send resync']);
});

test('after a resync was requested, frames of the slice are ignored until its begin, digests too', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(begin(1, instances));
  receiver.settleAll();
  receiver.context = aContext({ typeOf: everyType });
  receiver.take({ kind: 'declared' });

  const before = textsOf(receiver.frame(put(2, [pushed('one')], instances)));
  const behind = [textsOf(receiver.frame(begin(3, instances))), textsOf(receiver.frame(put(4, [pushed('one')], instances)))];

  t.deepEqual(before, ['push']);
  t.deepEqual(behind, [['push begin'], ['push upsert']]);
});

test('open slices cost nothing for each other: 20,000 are begun, parked and resynced within 20 seconds', (t) => {
  const count = 20_000;
  const slices = Array.from({ length: count }, (_, i) => aSlice('instances', `s-${i}`, 'A1'));
  const credit = { mutations: 10 * count, bytes: 2 ** 40 };
  const receiver = new SteppedReceiver(aContext({ credit, typeOf: () => undefined }));

  const startedAt = performance.now();
  for (const [i, slice] of slices.entries()) {
    receiver.frame(begin(i + 1, slice));
    receiver.settleAll();
  }
  for (let declared = 0; declared < 1_000; declared += 1) receiver.take({ kind: 'declared' });
  receiver.context = aContext({ credit, typeOf: everyType });
  const asked = receiver.take({ kind: 'declared' });
  for (const [i, slice] of slices.entries()) receiver.frame(begin(count + i + 1, slice));
  const elapsedMs = performance.now() - startedAt;

  t.is(asked.length, count);
  t.is(receiver.state.slices.size, count);
  t.true(elapsedMs < 20_000, `${elapsedMs} ms`);
});

test('a begin that compares is answered once it is durable: with a summary, which is empty if this end lacks the slice', (t) => {
  for (const [outcome, answer] of [
    [{ kind: 'unchanged' }, 'summarise'],
    [{ kind: 'fenced', holder: undefined }, 'send summary 1'],
  ] as const) {
    const receiver = new SteppedReceiver();

    t.deepEqual(textsOf(receiver.frame({ ...begin(1), compares: true })), ['push begin']);
    t.deepEqual(textsOf(receiver.settle(outcome)), ['send ack 1', answer]);
  }
  const notTaken = new SteppedReceiver(aContext({ covers: () => false }));
  notTaken.frame({ ...begin(1), compares: true });
  t.deepEqual(textsOf(notTaken.settle()), ['send ack 1', 'send summary 1']);
});

test('an end passes its claim’s term to the store', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame(begin(1), { ...end(2, 0), term: 7 });

  t.like(receiver.works[1]?.pushes, [{ kind: 'end', term: 7 }]);
});

test('an end of some buckets passes them to the store', (t) => {
  const receiver = new SteppedReceiver();
  receiver.frame({ ...begin(1), compares: true }, { ...end(2, 0), buckets: noBuckets });

  t.like(receiver.works[1]?.pushes, [{ kind: 'end', buckets: noBuckets }]);
});

test('RECEIVE-3: a refused object affects no other, and its number is acknowledged like theirs', (t) => {
  const receiver = SteppedReceiver.ofPusher();
  const bad: readonly (readonly [string, ReturnType<typeof pushed>, string])[] = [
    ['a path', pushed('one', { cluster: 'root:org' }), 'BadRequest'],
    ['a system cluster', pushed('one', { cluster: 'system:admin' }), 'Forbidden'],
    ['no uid', pushed('one', { uid: '' }), 'Invalid'],
    ['another name', { ...pushed('one'), name: 'two' }, 'BadRequest'],
    ['a namespace', { ...pushed('one'), namespace: 'default' }, 'BadRequest'],
    ['no name', { ...pushed('one'), name: '' }, 'BadRequest'],
    ['not JSON', { ...pushed('one'), body: Uint8Array.of(0x7b, 0x7d, 0x7d) }, 'BadRequest'],
    [
      'another kind',
      pushed('one', { body: { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'Shard', metadata: { name: 'one', uid: 'u' } } }),
      'Invalid',
    ],
    [
      'another version',
      pushed('one', { body: { apiVersion: 'apis.kcp.io/v1', kind: 'APIExport', metadata: { name: 'one', uid: 'u' } } }),
      'BadRequest',
    ],
    [
      'a foreign shard in its annotations',
      pushed('one', {
        body: {
          apiVersion: 'apis.kcp.io/v1alpha2',
          kind: 'APIExport',
          metadata: { name: 'one', uid: 'u', annotations: { 'kcp.io/shard': 'birch' } },
        },
      }),
      'Forbidden',
    ],
    [
      'a name that is none',
      pushed('One', { body: { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'One', uid: 'u' } } }),
      'Invalid',
    ],
    ['too many bytes', { ...pushed('one'), body: new Uint8Array(10_001) }, 'RequestEntityTooLarge'],
  ];
  const keyIsBad = ['a path', 'a system cluster', 'a namespace', 'no name'];
  const keyIsGood = new Set(bad.map(([what]) => what).filter((what) => !keyIsBad.includes(what)));
  bad.forEach(([what, object, reason], i) => {
    const sequence = 1 + i * 2;

    const effects = receiver.frame(put(sequence, [object, pushed('good')]));

    const keeps = keyIsGood.has(what) ? 'keep ' : '';
    t.deepEqual(
      textsOf(effects),
      [`send refuse ${sequence}`, 'refused', `push ${keeps}upsert`],
      `${what}: what is held under a good key stays`,
    );
    t.like(effects[1], { refusal: { reason } }, what);
    t.is(receiver.works[0]?.last, sequence + 1, what);
    receiver.settle();
  });
});

test('an object of a system cluster that is listed is accepted', (t) => {
  const receiver = SteppedReceiver.ofPusher();

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('one', { cluster: 'system:shard' })]))), ['push upsert']);
});

test('puts and deletes of a pusher are pushed in order', (t) => {
  const receiver = SteppedReceiver.ofPusher();

  receiver.frame(put(1, [pushed('one'), pushed('two')]), remove(3, ['one']));

  const by = { kind: 'pusher', term: 7 };
  t.like(receiver.works[0]?.pushes, [
    { kind: 'upsert', key: { name: 'one' }, by },
    { kind: 'upsert', key: { name: 'two' }, by },
  ]);
  t.like(receiver.works[1]?.pushes, [{ kind: 'retract', key: { name: 'one' }, by }]);
});

test('a pusher’s sync ends if as many objects arrived as it sent, refused and kept ones included', (t) => {
  const receiver = SteppedReceiver.ofPusher([]);
  receiver.frame(begin(1), put(2, [pushed('one'), { ...pushed('kept'), body: undefined }, pushed('bad', { uid: '' })]));

  t.deepEqual(textsOf(receiver.frame(end(5, 3))), ['push end']);
  t.like(receiver.works.at(-1)?.pushes, [{ kind: 'end', filterHash: '' }]);
});

test('RECEIVE-4: a stale slice of a pusher is asked for once, and goes on with its begin', (t) => {
  const receiver = SteppedReceiver.ofPusher([]);

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('one')]), put(2, [pushed('two')]), remove(3, ['one']))), [
    'push invalidate',
    'send resync',
    'push',
    'push',
  ]);
  t.deepEqual(textsOf(receiver.frame(begin(4), put(5, [pushed('one')]), end(6, 1))), ['push begin', 'push upsert', 'push end']);
});

test('a pusher’s slice waits while undecided pushes may declare its type, and is refused if nothing declares it', (t) => {
  const receiver = SteppedReceiver.ofPusher();
  receiver.frame(put(1, [pushed('one')]));

  t.deepEqual(textsOf(receiver.frame(begin(2, instances))), ['again']);
  receiver.settle();
  t.deepEqual(textsOf(receiver.frame(begin(2, instances))), ['send refuse 2', 'refused', 'push']);
  t.is(receiver.works[0]?.last, 2);
});

test('an object of an undeclared type makes its slice stale, and the slice is asked for once the type is declared', (t) => {
  const receiver = SteppedReceiver.ofPusher([apiExports, schemas], aPusherContext({ typeOf: () => undefined }));

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('one')]))), ['send refuse 1', 'refused', 'push invalidate']);
  receiver.settle();
  t.deepEqual(textsOf(receiver.frame(put(2, [pushed('one')]))), ['send refuse 2', 'refused', 'push'], 'it is stale already');
  receiver.settle();
  receiver.context = aPusherContext();

  t.deepEqual(textsOf(receiver.take({ kind: 'declared' })), ['send resync']);
  t.deepEqual(textsOf(receiver.frame(remove(3, ['one'], schemas))), ['push retract'], 'another slice goes on');
});

test('a slice whose begin was refused for an undeclared type is asked for once that type is declared, and not before', (t) => {
  const receiver = SteppedReceiver.ofPusher([], aPusherContext({ typeOf: () => undefined }));
  t.deepEqual(textsOf(receiver.frame(begin(1))), ['send refuse 1', 'refused', 'push']);
  receiver.settle();

  t.deepEqual(textsOf(receiver.take({ kind: 'declared' })), []);
  receiver.context = aPusherContext();
  t.deepEqual(textsOf(receiver.take({ kind: 'declared' })), ['send resync']);
  t.deepEqual(textsOf(receiver.take({ kind: 'declared' })), []);
});

test('a slice that its pusher stops naming must begin again when it is named again', (t) => {
  const receiver = SteppedReceiver.ofPusher([apiExports, schemas]);

  receiver.take({ kind: 'named', slices: new Set(['amber|apiexports.apis.kcp.io:']) });

  t.deepEqual(textsOf(receiver.frame(put(1, [pushed('one')]), remove(2, ['one'], schemas))), [
    'push upsert',
    'push invalidate',
    'send resync',
  ]);
});

test('a push that is fenced, or that the store cannot serve, is not acknowledged', (t) => {
  const table: readonly (readonly [PushOutcome, string])[] = [
    [{ kind: 'fenced', holder: undefined }, 'fenced'],
    [{ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'no disk' } }, 'bye unavailable'],
  ];
  for (const [outcome, text] of table) {
    const receiver = SteppedReceiver.ofPusher();
    receiver.frame(put(1, [pushed('one')]));

    t.deepEqual(textsOf(receiver.settle(outcome)), [text]);
  }
});

test('positions and comparisons of a pusher are ignored', (t) => {
  const receiver = SteppedReceiver.ofPusher();

  t.deepEqual(textsOf(receiver.frame({ ...put(1, [pushed('one')]), position: '9' })), ['push upsert']);
  t.deepEqual(textsOf(receiver.frame({ ...begin(2), compares: true })), ['push begin']);
  receiver.settle();
  t.deepEqual(textsOf(receiver.settle()), ['send ack 2']);
});
