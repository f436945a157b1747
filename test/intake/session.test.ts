import test from 'ava';
import fc from 'fast-check';
import type { PushOutcome } from '../../src/domain/push.js';
import type { Frame } from '../../src/frames/frame.js';
import type { SessionEffect, Work } from '../../src/intake/session-state.js';
import {
  aContext,
  aSlice,
  apiExports,
  begin,
  end,
  hello,
  term,
  nowMs,
  pushed,
  put,
  remove,
  schemas,
  SteppedSession,
  typeOf,
} from './a-session.js';
import { shardName } from '../support/objects.js';
import { aShardState } from './fake-pushes.js';

function sent(effects: readonly SessionEffect[]): readonly Frame[] {
  return effects.flatMap((effect) => (effect.kind === 'send' ? [effect.frame] : []));
}

function works(effects: readonly SessionEffect[]): readonly Work[] {
  return effects.flatMap((effect) => (effect.kind === 'push' ? [effect.work] : []));
}

function byes(effects: readonly SessionEffect[]): readonly string[] {
  return effects.flatMap((effect) => (effect.kind === 'bye' ? [effect.reason] : []));
}

const wrote: PushOutcome = { kind: 'written', revision: 1 };

test('a session begins with a hello that this cache and the certificate allow', (t) => {
  const table: readonly (readonly [string, Frame, string])[] = [
    ['no hello', put(1, [pushed('one')]), 'protocol'],
    ['an older protocol', hello({ protocol: 0 }), 'unsupported'],
    ['a role that is not taken', hello({ role: 'cache' }), 'unsupported'],
    ['no name of a shard', hello({ name: 'root:org' + '/'.repeat(3) }), 'protocol'],
    ['the name of another shard', hello({ name: 'birch' }), 'forbidden'],
    ['no process', hello({ process: '' }), 'protocol'],
  ];
  for (const [what, frame, reason] of table) {
    const session = new SteppedSession();

    t.deepEqual(byes(session.frame(frame)), [reason], what);
    t.is(session.state.phase, 'ended', what);
    t.deepEqual(session.frame(hello()), [], what);
  }
});

test('a newer peer is welcomed in the newest version that is spoken here', (t) => {
  const session = new SteppedSession();

  t.like(session.frame(hello({ protocol: 9 }))[0], {
    kind: 'acquire',
    shard: 'amber',
    process: 'process-1',
    term: 0,
    takesOver: false,
  });
  const [welcome] = sent(session.take({ kind: 'decided', outcome: { kind: 'acquired', term }, synced: [], cacheId: 'c', epoch: 1 }));
  t.like(welcome, { kind: 'welcome', protocol: 1 });
});

test('a pusher that has its shard is welcomed with what is synced, credit and limits; one that has not is sent away', (t) => {
  const { credit, limits } = aContext();
  const welcomed = new SteppedSession();
  welcomed.frame(hello());
  const fenced = new SteppedSession();
  fenced.frame(hello());
  const unavailable = new SteppedSession();
  unavailable.frame(hello());

  const decided = { kind: 'decided', synced: [apiExports], cacheId: 'cache-1', epoch: 7 } as const;
  t.deepEqual(sent(welcomed.take({ ...decided, outcome: { kind: 'acquired', term } })), [
    { kind: 'welcome', protocol: 1, cacheId: 'cache-1', epoch: 7, term, synced: [apiExports], credit, limits },
  ]);
  t.deepEqual(byes(fenced.take({ ...decided, outcome: { kind: 'fenced', holder: aShardState(shardName('amber'), nowMs) } })), ['fenced']);
  const full = { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'full' } } as const;
  t.deepEqual(unavailable.take({ ...decided, outcome: full }), [
    { kind: 'bye', reason: 'unavailable', message: 'full', retryAfterMs: 1000 },
  ]);
});

test('what is put and deleted is pushed in order, and acknowledged once it is settled', (t) => {
  const session = SteppedSession.open();

  const [first] = works(session.frame(put(1, [pushed('one'), pushed('two')])));
  const [second] = works(session.frame(remove(3, ['one'])));

  t.deepEqual(
    first?.pushes.map((push) => [push.kind, 'key' in push && push.key.name]),
    [
      ['upsert', 'one'],
      ['upsert', 'two'],
    ],
  );
  t.deepEqual(
    second?.pushes.map((push) => [push.kind, 'key' in push && push.key.name]),
    [['retract', 'one']],
  );
  t.true(first !== undefined && second !== undefined);
  t.deepEqual(sent(session.take({ kind: 'settled', work: first!, outcomes: [wrote, wrote] })), [
    { kind: 'ack', sequence: 2, credit: session.context.credit },
  ]);
  t.like(sent(session.take({ kind: 'settled', work: second!, outcomes: [wrote] }))[0], { kind: 'ack', sequence: 3 });
  t.like(session.state, { unsettled: { mutations: 0, bytes: 0 }, next: 4 });
});

test('what is refused touches that object alone, and its number is acknowledged like the others', (t) => {
  const session = SteppedSession.open();
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

    const effects = session.frame(put(sequence, [object, pushed('good')]));

    t.deepEqual(
      sent(effects).map((frame) => [frame.kind, 'sequence' in frame && frame.sequence, 'reason' in frame && frame.reason]),
      [['refuse', sequence, reason]],
      what,
    );
    const kinds = works(effects)[0]?.pushes.map(({ kind }) => kind);
    t.is(kinds?.at(-1), 'upsert', what);
    t.is(kinds?.includes('keep'), keyIsGood.has(what), `${what}: what is held under a good key stays`);
    t.is(works(effects)[0]?.last, sequence + 1, what);
    session.take({ kind: 'settled', work: works(effects)[0]!, outcomes: [wrote] });
  });
  t.is(session.effects.filter(({ kind }) => kind === 'refused').length, bad.length);
});

test('a system cluster that is listed is taken', (t) => {
  const session = SteppedSession.open();

  t.is(works(session.frame(put(1, [pushed('one', { cluster: 'system:shard' })])))[0]?.pushes.length, 1);
});

test('numbers that came before are passed over', (t) => {
  const session = SteppedSession.open();
  session.frame(put(1, [pushed('one'), pushed('two')]));

  t.deepEqual(session.frame(put(1, [pushed('one'), pushed('two')])), []);
  t.deepEqual(session.frame(remove(2, ['two'])), []);
});

test('a gap invalidates every slice, asks for each again, and nothing of them is applied before its begin', (t) => {
  const session = SteppedSession.open([apiExports, schemas]);
  session.frame(put(1, [pushed('one')]));

  const effects = session.frame(put(5, [pushed('five')]));

  t.deepEqual(
    sent(effects).map((frame) => [frame.kind, 'slice' in frame && frame.slice]),
    [
      ['resync', apiExports],
      ['resync', schemas],
    ],
  );
  t.deepEqual(
    works(effects).flatMap(({ pushes }) => pushes.map(({ kind }) => kind)),
    ['invalidate', 'invalidate'],
  );
  t.is(works(effects)[0]?.last, 5);
  t.deepEqual(works(session.frame(remove(6, ['one'])))[0]?.pushes, []);
  t.deepEqual(sent(session.frame(put(7, [pushed('six')]))), [], 'it is asked for once');
  t.deepEqual(
    works(session.frame(begin(8)))[0]?.pushes.map(({ kind }) => kind),
    ['begin'],
  );
  t.deepEqual(
    works(session.frame(put(9, [pushed('six')])))[0]?.pushes.map(({ kind }) => kind),
    ['upsert'],
  );
});

test('a gap before a type that nobody knows leaves no trace of that type', (t) => {
  const session = SteppedSession.open();

  const effects = session.frame(put(5, [pushed('one')], aSlice('nonsense')));

  t.deepEqual(
    sent(effects).map((frame) => 'slice' in frame && frame.slice),
    [apiExports],
  );
  t.like(session.state, { slices: new Map([['amber|apiexports.apis.kcp.io:', { slice: apiExports, phase: 'stale', objects: 0 }]]) });
});

test('a frame that overlaps what came before is a gap', (t) => {
  const session = SteppedSession.open();
  session.frame(put(1, [pushed('one'), pushed('two')]));

  t.like(sent(session.frame(put(2, [pushed('two'), pushed('three')])))[0], { kind: 'resync' });
});

test('a sync ends when as much came as was synced, and is asked for again when not', (t) => {
  const whole = SteppedSession.open([]);
  whole.frame(begin(1));
  whole.frame(put(2, [pushed('one'), { ...pushed('kept'), body: undefined }, pushed('bad', { uid: '' })]));
  const short = SteppedSession.open([]);
  short.frame(begin(1));
  short.frame(put(2, [pushed('one')]));

  t.deepEqual(
    works(whole.frame(end(5, 3)))[0]?.pushes.map(({ kind }) => kind),
    ['end'],
  );
  const effects = short.frame(end(3, 2));
  t.deepEqual(
    works(effects)[0]?.pushes.map(({ kind }) => kind),
    ['invalidate'],
  );
  t.like(sent(effects)[0], { kind: 'resync' });
  t.like(sent(whole.frame(end(6, 0)))[0], { kind: 'resync' }, 'an end without a begin');
});

test('what is neither synced nor begun is asked for', (t) => {
  const session = SteppedSession.open([]);

  const effects = session.frame(put(1, [pushed('one')]));

  t.like(sent(effects)[0], { kind: 'resync', slice: apiExports });
  t.deepEqual(
    works(effects)[0]?.pushes.map(({ kind }) => kind),
    ['invalidate'],
  );
});

test('who speaks of another shard, or sends more than was allowed, is sent away', (t) => {
  const eleven = Array.from({ length: 11 }, (_, i) => pushed(`n${i}`));
  const beyond = SteppedSession.open();
  beyond.frame(put(1, [pushed('one')]));

  t.deepEqual(byes(SteppedSession.open().frame(put(1, [pushed('one')], aSlice('apiexports', 'birch')))), ['forbidden']);
  t.deepEqual(byes(SteppedSession.open().frame(put(1, eleven))), ['protocol']);
  beyond.frame(put(2, eleven.slice(0, 10)));
  t.deepEqual(byes(beyond.frame(put(12, eleven.slice(0, 10)))), ['protocol']);
  t.deepEqual(byes(SteppedSession.open().frame({ kind: 'route', route: [] })), ['protocol']);
  t.deepEqual(byes(SteppedSession.open().frame(hello())), ['protocol']);
});

test('a type that what is under way may declare is waited for; one that nothing declares is refused', (t) => {
  const unknown = aSlice('instances', 'amber', 'hash');
  const session = SteppedSession.open();
  const [work] = works(session.frame(put(1, [pushed('one')])));

  t.deepEqual(session.frame(begin(2, unknown)), [{ kind: 'again', frame: begin(2, unknown) }]);
  session.take({ kind: 'settled', work: work!, outcomes: [wrote] });
  const effects = session.frame(begin(2, unknown));
  t.like(sent(effects)[0], { kind: 'refuse', sequence: 2, reason: 'NotFound' });
  t.is(works(effects)[0]?.last, 2);
});

test('a type that is gone and comes back is asked for as a whole: at once when it is back, else when something of it comes', (t) => {
  let isBack = true;
  const context = aContext({ typeOf: (resource) => (isBack || resource.resource !== 'apiexports' ? typeOf(resource) : undefined) });
  const session = SteppedSession.open([apiExports, schemas], context);
  const later = SteppedSession.open([apiExports, schemas], context);

  t.like(sent(session.take({ kind: 'dropped', resource: apiExports.resource }))[0], { kind: 'resync', slice: apiExports });
  isBack = false;
  t.deepEqual(later.take({ kind: 'dropped', resource: apiExports.resource }), []);
  isBack = true;
  t.like(sent(later.frame(put(1, [pushed('one')])))[0], { kind: 'resync', slice: apiExports });
});

test('what is refused because nothing declares its type makes its slice stale', (t) => {
  let isDeclared = false;
  const context = aContext({ typeOf: (resource) => (isDeclared ? typeOf(resource) : undefined) });
  const session = SteppedSession.open([apiExports], context);

  const [work] = works(session.frame(put(1, [pushed('one')])));
  t.deepEqual(
    work?.pushes.map(({ kind }) => kind),
    ['invalidate'],
  );
  isDeclared = true;
  t.like(sent(session.frame(put(2, [pushed('one')])))[0], { kind: 'resync', slice: apiExports });
});

test('another type that is gone changes nothing', (t) => {
  const session = SteppedSession.open([apiExports, schemas]);
  session.take({ kind: 'dropped', resource: apiExports.resource });

  t.deepEqual(sent(session.frame(remove(1, ['one'], schemas))), []);
});

test('what the store says decides whether the session goes on', (t) => {
  const table: readonly (readonly [PushOutcome, Partial<Frame> | undefined, string | undefined])[] = [
    [wrote, { kind: 'ack' }, undefined],
    [{ kind: 'unchanged' }, { kind: 'ack' }, undefined],
    [{ kind: 'swept', removed: 3 }, { kind: 'ack' }, undefined],
    [{ kind: 'fenced', holder: aShardState(shardName('amber'), nowMs) }, undefined, 'fenced'],
    [{ kind: 'fenced', holder: aShardState(shardName('amber'), nowMs, { removed: true }) }, undefined, 'fenced'],
    [{ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'no disk' } }, undefined, 'unavailable'],
  ];
  for (const [outcome, frame, reason] of table) {
    const session = SteppedSession.open();
    const [work] = works(session.frame(put(1, [pushed('one')])));

    const effects = session.take({ kind: 'settled', work: work!, outcomes: [outcome] });

    t.deepEqual(byes(effects), reason === undefined ? [] : [reason]);
    t.is(sent(effects)[0]?.kind, frame?.kind);
  }
});

test('a sync that was interrupted in the store is asked for again', (t) => {
  const session = SteppedSession.open([]);
  session.frame(begin(1));
  const [work] = works(session.frame(end(2, 0)));

  const effects = session.take({ kind: 'settled', work: work!, outcomes: [{ kind: 'unbegun' }] });

  t.deepEqual(
    sent(effects).map(({ kind }) => kind),
    ['ack', 'resync'],
  );
  t.deepEqual(works(session.frame(remove(3, ['one'])))[0]?.pushes, []);
});

test('whatever comes, in whatever order: acknowledgements rise, no more is under way than was allowed, and all of it is the shard’s own', (t) => {
  const slices = [apiExports, schemas, aSlice('apiexports', 'birch')];
  const anyFrame = fc.record({
    kind: fc.constantFrom('put', 'delete', 'begin', 'end', 'status', 'hello'),
    skew: fc.constantFrom(0, 0, 0, 0, 0, -1, 1, 3),
    count: fc.integer({ min: 1, max: 4 }),
    slice: fc.constantFrom(0, 0, 0, 1, 1, 2),
    settle: fc.integer({ min: 0, max: 3 }),
    outcome: fc.constantFrom('written', 'written', 'unchanged', 'unbegun', 'fenced'),
  });

  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 40 }), (moves) => {
      const session = SteppedSession.open();
      const underWay: Work[] = [];
      let acknowledged = 0;
      for (const { kind, skew, count, slice: at, settle, outcome } of moves) {
        const next = session.state.phase === 'open' ? session.state.next : 1;
        const slice = slices[at] ?? apiExports;
        const names = Array.from({ length: count }, (_, i) => `n${i}`);
        const sequence = Math.max(1, next + skew);
        const frames: Record<typeof kind, Frame> = {
          put: put(
            sequence,
            names.map((name) => pushed(name)),
            slice,
          ),
          delete: remove(sequence, names, slice),
          begin: begin(sequence, slice),
          end: end(sequence, count, slice),
          status: { kind: 'status', freshness: [] },
          hello: hello(),
        };
        const wasEnded = session.state.phase === 'ended';
        const effects = [...session.frame(frames[kind])];
        if (wasEnded && effects.length > 0) return false;
        underWay.push(...works(effects));
        for (let i = 0; i < settle; i += 1) {
          const work = underWay.shift();
          if (work === undefined) break;
          const outcomes = work.pushes.map((): PushOutcome =>
            outcome === 'written'
              ? wrote
              : outcome === 'fenced'
                ? { kind: 'fenced', holder: aShardState(shardName('amber'), 1) }
                : { kind: outcome },
          );
          for (const frame of sent(session.take({ kind: 'settled', work, outcomes }))) {
            if (frame.kind !== 'ack') continue;
            if (frame.sequence <= acknowledged) return false;
            acknowledged = frame.sequence;
          }
        }
        const own = works(effects).flatMap(({ pushes }) => pushes);
        if (
          !own.every(
            (push) => ('key' in push ? push.key.shard : 'slice' in push ? push.slice.shard : 'shard' in push && push.shard) === 'amber',
          )
        )
          return false;
        if (session.state.phase === 'open') {
          const { unsettled } = session.state;
          const waiting = underWay.reduce((sum, { mutations }) => sum + mutations, 0);
          if (unsettled.mutations !== waiting || unsettled.mutations > session.context.credit.mutations) return false;
        }
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass();
});
