/**
 * Tests that each validator accepts a good history and finds the one violation that it exists for.
 */
import { test } from './test.js';
import { isHealedDeletion, validate, validators, type Guarantee } from './validators.js';
import type { Change, History, SeenEvent, SeenList, SeenWatch, Sighting } from './watch-history.js';

const gold = { tier: 'gold' };
const one = 'amber|acme||one';
const two = 'birch|acme||two';
const three = 'cedar|acme||three';

//  1: +one   2: +two(gold)   3: ~one(gold)   4: ~two   5: -one   6: +three
const truth: readonly Change[] = [
  { kind: 'put', key: one, position: 1n, labels: {} },
  { kind: 'put', key: two, position: 2n, labels: gold },
  { kind: 'put', key: one, position: 3n, labels: gold },
  { kind: 'put', key: two, position: 4n, labels: {} },
  { kind: 'delete', key: one, position: 5n, labels: gold },
  { kind: 'put', key: three, position: 6n, labels: {} },
];

const full = [
  event('ADDED', one, 1n),
  event('ADDED', two, 2n),
  event('MODIFIED', one, 3n),
  event('MODIFIED', two, 4n),
  event('DELETED', one, 5n),
  event('ADDED', three, 6n),
];

/** Changes of `one` by its writer: a, then deleted, then b. */
const turns: readonly Change[] = [
  { kind: 'put', key: one, position: 1n, labels: { turn: 'a' } },
  { kind: 'delete', key: one, position: 2n, labels: { turn: 'a' } },
  { kind: 'put', key: one, position: 3n, labels: { turn: 'b' } },
];

/** A client that had revision 3 starts a WatchList at 5, when `one` is gone. */
const heals = { kind: 'initial', named: 3n, isHealed: true } as const;
const relisted = [event('ADDED', two, 4n), bookmark(5n, true), event('DELETED', one, 5n), bookmark(5n)];

test('a bare DELETED for a key that holds nothing is no change', (t) => {
  const bare = (key: string, position: bigint): SeenEvent => ({ ...event('DELETED', key, position), bare: true });
  const received = (extra: SeenEvent) => history({ watches: [behind('full', 0n, [...full.slice(0, 5), extra, ...full.slice(5)])] });

  t.deepEqual(validate(received(bare(one, 5n)), ['G2', 'G3', 'G4', 'G7']), []);
  t.deepEqual(
    validate(received(bare(two, 5n)), ['G2', 'G3', 'G4', 'G7']).map(({ guarantee }) => guarantee),
    ['G4'],
  );
});

test('a history without faults violates nothing', (t) => {
  const selected = [event('ADDED', two, 2n), event('ADDED', one, 3n), event('DELETED', two, 4n), event('DELETED', one, 5n)];
  const watchList = [
    event('ADDED', two, 2n),
    event('ADDED', one, 1n),
    bookmark(2n, true),
    event('MODIFIED', one, 3n),
    bookmark(3n),
    event('MODIFIED', two, 4n),
  ];
  const good = history({
    watches: [
      behind('full', 0n, full),
      { ...behind('selected', 0n, selected), selects: ({ labels }) => labels['tier'] === 'gold' },
      { ...behind('list', 0n, watchList), began: { kind: 'initial' } },
      behind('first half', 0n, full.slice(0, 3)),
      { ...behind('second half', 3n, full.slice(3)), resumes: 'first half' },
      behind('from the list', 2n, full.slice(2)),
      { ...behind('heals', 0n, relisted), began: heals },
    ],
    sightings: [sighting(1n, 0, 'a'), sighting(1n, 1), sighting(3n, 2, 'b'), { ...sighting(2n, 3), askedMs: 1.2 }],
    lists: [
      list(
        2n,
        [
          [one, 1n],
          [two, 2n],
        ],
        'from the list',
      ),
    ],
  });

  t.deepEqual(validate(good), []);
});

//  1: +one +two +three, one transaction   2: -one -three, another
const atOnce: readonly Change[] = [
  ...[one, two, three].map((key): Change => ({ kind: 'put', key, position: 1n, labels: {} })),
  ...[one, three].map((key): Change => ({ kind: 'delete', key, position: 2n, labels: {} })),
];
const wholly = [...[one, two, three].map((key) => event('ADDED', key, 1n)), ...[one, three].map((key) => event('DELETED', key, 2n))];

test('a watch gets all changes of a revision together, and gets all of them again after a cut', (t) => {
  const watches = [
    behind('full', 0n, [...wholly, bookmark(2n)]),
    { ...behind('cut', 0n, wholly.slice(0, 2)), isCut: true },
    { ...behind('resumed', 1n, wholly), resumes: 'cut' },
  ];

  t.deepEqual(validate(history({ truth: atOnce, watches })), []);
});

test('a resumed watch that ends before its first event leaves its client where the cut left it', (t) => {
  const watches = [
    { ...behind('cut', 0n, wholly.slice(0, 2)), isCut: true },
    { ...behind('resumed', 1n, []), resumes: 'cut' },
  ];

  t.deepEqual(validate(history({ truth: atOnce, watches })), []);
});

const broken: readonly Readonly<{ guarantee: Guarantee; title: string; history: History; says: RegExp }>[] = [
  {
    guarantee: 'G1',
    title: 'an acknowledged write that is gone',
    history: history({ truth: turns, acknowledged: [put(1n, 'a'), put(4n, 'c')], unansweredMax: 9 }),
    says: /lost: c of amber\|acme\|\|one at 4/,
  },
  {
    guarantee: 'G1',
    title: 'writes of one key in another order than they were acknowledged',
    history: history({ truth: turns, acknowledged: [put(3n, 'b'), put(1n, 'a')], unansweredMax: 9 }),
    says: /lost: a of/,
  },
  {
    guarantee: 'G1',
    title: 'another content at an acknowledged revision',
    history: history({ truth: turns, acknowledged: [put(1n, 'x')], unansweredMax: 9 }),
    says: /lost: x of/,
  },
  {
    guarantee: 'G1',
    title: 'an acknowledged deletion that did not happen',
    history: history({ truth: turns, acknowledged: [{ kind: 'delete', key: one, behind: 2n }], unansweredMax: 9 }),
    says: /lost: the deletion of amber\|acme\|\|one behind 2/,
  },
  {
    guarantee: 'G1',
    title: 'a change that was never acknowledged',
    history: history({ truth: turns, acknowledged: [put(1n, 'a'), put(3n, 'b')] }),
    says: /has 1 changes without an answer, at most 0/,
  },
  {
    guarantee: 'G1',
    title: 'an object that nobody wrote',
    history: history({ truth: [...turns, { ...truth[1]!, position: 4n }], acknowledged: [put(1n, 'a'), put(3n, 'b')], unansweredMax: 0 }),
    says: /nobody wrote birch/,
  },
  {
    guarantee: 'G2',
    title: 'an event after a later one',
    history: history({ watches: [behind('w', 0n, [full[1]!, full[0]!])] }),
    says: /ADDED amber\|acme\|\|one at 1 came after revision 2/,
  },
  {
    guarantee: 'G2',
    title: 'an event from before the start',
    history: history({ watches: [behind('w', 3n, [full[1]!])] }),
    says: /came after revision 3/,
  },
  {
    guarantee: 'G4',
    title: 'half of a revision',
    history: history({ truth: atOnce, watches: [behind('w', 0n, wholly.slice(0, 4))] }),
    says: /DELETED cedar\|acme\|\|three at 2 is missing/,
  },
  {
    guarantee: 'G6',
    title: 'the rest of a revision that is missing after a cut',
    history: history({
      truth: atOnce,
      watches: [
        { ...behind('cut', 0n, wholly.slice(0, 2)), isCut: true },
        { ...behind('w', 1n, wholly.slice(3)), resumes: 'cut' },
      ],
    }),
    says: /ADDED cedar\|acme\|\|three at 1 is missing/,
  },
  {
    guarantee: 'G7',
    title: 'a bookmark in the middle of a revision',
    history: history({ truth: atOnce, watches: [behind('w', 0n, [...wholly.slice(0, 4), bookmark(2n), ...wholly.slice(4)])] }),
    says: /overtook DELETED cedar/,
  },
  {
    guarantee: 'G3',
    title: 'an event that comes twice',
    history: history({ watches: [behind('w', 0n, [full[0]!, full[0]!])] }),
    says: /came twice/,
  },
  {
    guarantee: 'G4',
    title: 'a change left out between two seen ones',
    history: history({
      watches: [
        behind(
          'w',
          0n,
          full.filter((_, index) => index !== 2),
        ),
      ],
    }),
    says: /MODIFIED amber\|acme\|\|one at 3 is missing/,
  },
  {
    guarantee: 'G4',
    title: 'a DELETED left out',
    history: history({
      watches: [
        behind(
          'w',
          0n,
          full.filter(({ type }) => type !== 'DELETED'),
        ),
      ],
    }),
    says: /DELETED amber\|acme\|\|one at 5 is missing/,
  },
  {
    guarantee: 'G4',
    title: 'an event nobody caused',
    history: history({ watches: [behind('w', 0n, [...full, event('ADDED', 'amber|acme||ghost', 7n)])] }),
    says: /no such change is known/,
  },
  {
    guarantee: 'G4',
    title: 'an object left out of the initial events',
    history: history({ watches: [{ ...behind('w', 0n, [event('ADDED', one, 1n), bookmark(2n, true)]), began: { kind: 'initial' } }] }),
    says: /birch\|acme\|\|two should be at 2, is absent/,
  },
  {
    guarantee: 'G5',
    title: 'a list that holds what its revision does not',
    history: history({
      lists: [
        list(2n, [
          [one, 3n],
          [two, 2n],
        ]),
      ],
    }),
    says: /should be at 1, is 3/,
  },
  {
    guarantee: 'G4',
    title: 'an event with another content',
    history: history({ watches: [behind('w', 0n, full.with(2, { ...full[2]!, labels: {} }))] }),
    says: /MODIFIED amber\|acme\|\|one at 3 has the labels .*gold.*, came with \[\]/,
  },
  {
    guarantee: 'G5',
    title: 'an object that a list holds twice',
    history: history({
      lists: [
        list(1n, [
          [one, 1n],
          [one, 1n],
        ]),
      ],
    }),
    says: /comes twice/,
  },
  {
    guarantee: 'G5',
    title: 'a deletion that a client never receives on a relist',
    history: history({ watches: [{ ...behind('w', 0n, relisted.toSpliced(2, 1)), began: heals }] }),
    says: /acme\|\|one is gone, and the client did not receive that/,
  },
  {
    guarantee: 'G5',
    title: 'an existing object that a client receives as gone on a relist',
    history: history({ watches: [{ ...behind('w', 0n, [...relisted, event('DELETED', two, 5n)]), began: heals }] }),
    says: /acme\|\|two exists, but was reported as gone/,
  },
  {
    guarantee: 'G5',
    title: 'a watch that begins after its list',
    history: history({
      watches: [behind('w', 2n, full.slice(3))],
      lists: [
        list(
          2n,
          [
            [one, 1n],
            [two, 2n],
          ],
          'w',
        ),
      ],
      truth: truth.filter(({ position }) => position !== 5n),
    }),
    says: /list at 2 and the watch up to 6/,
  },
  {
    guarantee: 'G6',
    title: 'a gap between two watches',
    history: history({ watches: [behind('first', 0n, full.slice(0, 2)), { ...behind('w', 3n, full.slice(3)), resumes: 'first' }] }),
    says: /MODIFIED amber\|acme\|\|one at 3 is missing/,
  },
  {
    guarantee: 'G6',
    title: 'a repeat across a restart',
    history: history({ watches: [behind('first', 0n, full.slice(0, 3)), { ...behind('w', 3n, full.slice(2)), resumes: 'first' }] }),
    says: /came twice/,
  },
  {
    guarantee: 'G6',
    title: 'a resumption refused with 410',
    history: history({
      watches: [
        behind('first', 0n, full.slice(0, 3)),
        { ...behind('w', 3n, [{ ...bookmark(0n), type: 'ERROR', code: 410 }]), resumes: 'first' },
      ],
    }),
    says: /ended with an error 410/,
  },
  {
    guarantee: 'G7',
    title: 'an event after its bookmark',
    history: history({ watches: [behind('w', 0n, [full[0]!, bookmark(2n), full[1]!])] }),
    says: /ADDED birch\|acme\|\|two at 2 came after the bookmark at 2/,
  },
  {
    guarantee: 'G7',
    title: 'a bookmark for what was never sent',
    history: history({ watches: [behind('w', 0n, [full[0]!, bookmark(2n)])] }),
    says: /the bookmark at 2 overtook ADDED birch/,
  },
  {
    guarantee: 'G7',
    title: 'a bookmark that falls',
    history: history({ watches: [behind('w', 6n, [bookmark(8n), bookmark(7n)])] }),
    says: /fell from 8 to 7/,
  },
  {
    guarantee: 'G8',
    title: 'a flip reported as a modification',
    history: history({ watches: [selecting([event('ADDED', two, 2n), event('MODIFIED', one, 3n), event('DELETED', two, 4n)])] }),
    says: /ADDED amber\|acme\|\|one at 3 is missing/,
  },
  {
    guarantee: 'G8',
    title: 'an object that left the selector unnoticed',
    history: history({ watches: [selecting([event('ADDED', two, 2n), event('ADDED', one, 3n), event('DELETED', one, 5n)])] }),
    says: /DELETED birch\|acme\|\|two at 4 is missing/,
  },
  {
    guarantee: 'G9',
    title: 'a revision that names two changes',
    history: history({ sightings: [sighting(1n, 0, 'a'), sighting(2n, 1, 'b'), sighting(1n, 2), sighting(2n, 3, 'c')] }),
    says: /2 was b and then c/,
  },
  {
    guarantee: 'G9',
    title: 'a revision that falls',
    history: history({ sightings: [sighting(5n, 0), sighting(4n, 1)] }),
    says: /4 was shown as the present after 5/,
  },
];

for (const { guarantee, title, history: bad, says } of broken) {
  test(`${guarantee} finds ${title}`, (t) => {
    const found = validators[guarantee](bad);

    t.true(
      found.some(({ message }) => says.test(message)),
      JSON.stringify(found),
    );
    t.true(found.every((violation) => violation.guarantee === guarantee));
  });
}

test('a healed deletion is exempt from G2 and G7 only if the watch named an old revision and the event has the bookmark’s revision', (t) => {
  const events = [event('ADDED', two, 4n), event('ADDED', three, 6n), bookmark(6n, true), event('DELETED', one, 6n)];
  const healed: SeenWatch = { ...behind('healed', 0n, events), began: { kind: 'initial', named: 1n } };
  const unnamed: SeenWatch = { ...healed, began: { kind: 'initial' } };
  const elsewhere: SeenWatch = { ...healed, events: events.with(3, event('DELETED', one, 5n)) };

  t.true(isHealedDeletion(healed, 3));
  t.deepEqual(validate(history({ watches: [healed] })), []);
  t.true(validators.G7(history({ watches: [unnamed] })).length > 0);
  t.true(validators.G2(history({ watches: [elsewhere] })).length > 0);
  t.true(validators.G7(history({ watches: [elsewhere] })).length > 0);
});

test('G1 accepts acknowledged writes, and as many writes without an answer as it may', (t) => {
  const all = [put(1n, 'a'), { kind: 'delete', key: one, behind: 1n }, put(3n, 'b')] as const;

  t.deepEqual(validators.G1(history({ truth: turns, acknowledged: all })), []);
  t.deepEqual(validators.G1(history({ truth: turns, acknowledged: [all[0], all[2]], unansweredMax: 1 })), []);
});

test('a healed deletion that comes twice is not exempt from G3', (t) => {
  const events = [
    event('ADDED', two, 4n),
    event('ADDED', three, 6n),
    bookmark(6n, true),
    event('DELETED', one, 6n),
    event('DELETED', one, 6n),
  ];

  t.is(validators.G3(history({ watches: [{ ...behind('w', 0n, events), began: { kind: 'initial', named: 1n } }] })).length, 1);
});

function history(parts: Partial<History>): History {
  return { truth, watches: [], lists: [], ...parts };
}

function put(position: bigint, turn: string) {
  return { kind: 'put', key: one, position, turn } as const;
}

function sighting(position: bigint, askedMs: number, what?: string): Sighting {
  return { position, askedMs, answeredMs: askedMs + 0.5, ...(what === undefined ? {} : { what }) };
}

function behind(id: string, position: bigint, events: readonly SeenEvent[]): SeenWatch {
  return { id, began: { kind: 'behind', position }, events, covers: () => true };
}

function selecting(events: readonly SeenEvent[]): SeenWatch {
  return { ...behind('w', 0n, events), selects: ({ labels }) => labels['tier'] === 'gold' };
}

function list(position: bigint, entries: readonly (readonly [string, bigint])[], watchedBy?: string): SeenList {
  return {
    id: 'list',
    position,
    entries: entries.map(([key, at]) => ({ key, position: at })),
    covers: () => true,
    ...(watchedBy === undefined ? {} : { watchedBy }),
  };
}

/** The labels are those of `truth`. */
function event(type: SeenEvent['type'], key: string, position: bigint): SeenEvent {
  return { type, key, position, labels: position === 2n || position === 3n ? gold : {}, initialEventsEnd: false };
}

function bookmark(position: bigint, initialEventsEnd = false): SeenEvent {
  return { type: 'BOOKMARK', key: '', position, labels: {}, initialEventsEnd };
}
