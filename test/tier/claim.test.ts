import test from 'ava';
import fc from 'fast-check';
import {
  choose,
  claimed,
  compareClaims,
  judgeClaim,
  type Choice,
  type Claim,
  type Offer,
  type ShardState,
  type Verdict,
} from '../../src/domain/claim.js';
import { childSide, type LinkSide, type Side } from '../../src/domain/side.js';
import { seeded } from '../crash/random.js';
import { fractions } from '../simulation/seeded-random.js';
import { shardName } from '../support/objects.js';
import { ClaimNetwork } from './claim-network.js';

const { TEST_NETWORKS: networks = '3000' } = process.env;
const shard = shardName('amber');
const [east, west] = [childSide('east'), childSide('west')];

function known(incarnation: number, state: Partial<ShardState> = {}): ShardState {
  const { side = 'local' } = state;
  return { shard, incarnation, moves: 0, removed: false, origin: side === 'local' ? 'own' : 'far', side, plain: false, ...state };
}

function aChoice(incarnation: number, state: Partial<ShardState> = {}, { path = [], reached = true }: Partial<Choice> = {}): Choice {
  return { state: known(incarnation, state), path, reached };
}

function anOffer(incarnation: number, offer: Partial<Offer> = {}): Offer {
  return { incarnation, moves: 0, removed: false, origin: 'far', path: ['far'], reached: true, ...offer };
}

function chosen(before: Choice | undefined, offers: Readonly<Record<string, Offer>>): Choice | undefined {
  const heard = Object.entries(offers) as [LinkSide, Offer][];
  const highest = heard
    .map(([, offer]) => offer)
    .toSorted(compareClaims)
    .at(-1);
  return choose('own', before, { shard, highest, offers: new Map(heard) });
}

test('claims are ordered by incarnation, moves, removal and the id of their origin', (t) => {
  const rising = [
    anOffer(4, { moves: 9, removed: true }),
    anOffer(5),
    anOffer(5, { origin: 'zone' }),
    anOffer(5, { removed: true }),
    anOffer(5, { moves: 1 }),
  ];

  t.deepEqual(rising.toReversed().toSorted(compareClaims), rising);
  t.is(compareClaims(anOffer(5), anOffer(5, { path: [], reached: false })), 0);
});

test('of two pushers the later process has the shard; the same one has it wherever it is', (t) => {
  const table: readonly (readonly [what: string, before: ShardState | undefined, incarnation: number, verdict: Verdict, moves: number])[] =
    [
      ['nothing known', undefined, 5, 'takes', 0],
      ['a later process', known(5, { moves: 3 }), 6, 'takes', 0],
      ['an earlier process', known(5), 4, 'refused', 0],
      ['the same, again', known(5, { moves: 2 }), 5, 'stands', 2],
      ['the same, which was elsewhere', known(5, { side: east, moves: 2 }), 5, 'takes', 3],
      [
        'the same, of which this cache has forgotten that it was here',
        known(5, { side: undefined, origin: 'own', moves: 2 }),
        5,
        'takes',
        2,
      ],
      ['a later one than that elsewhere', known(5, { side: 'parent' }), 6, 'takes', 0],
      ['an earlier one than that elsewhere', known(5, { side: 'parent' }), 4, 'refused', 0],
      ['it was removed', known(5, { side: undefined, removed: true }), 5, 'refused', 0],
      ['it was removed, and a later one comes', known(5, { side: undefined, removed: true }), 6, 'takes', 0],
    ];
  for (const [what, before, incarnation, verdict, moves] of table) {
    const claim: Claim = known(incarnation);
    t.is(judgeClaim(before, claim), verdict, what);
    if (verdict === 'takes') t.like(claimed(claim, before), { incarnation, moves, side: 'local', origin: 'own', removed: false }, what);
  }
});

test('what was chosen for a link takes the shard when it is higher, or the same by another way', (t) => {
  const table: readonly (readonly [what: string, before: ShardState | undefined, claim: Claim, verdict: Verdict])[] = [
    ['nothing known', undefined, known(5, { side: east }), 'takes'],
    ['higher, of a pusher', known(5), known(5, { side: east, moves: 1 }), 'takes'],
    ['lower', known(5, { side: east }), known(4, { side: west, moves: 9 }), 'refused'],
    ['the same', known(5, { side: east }), known(5, { side: east }), 'stands'],
    ['another way', known(5, { side: east }), known(5, { side: west }), 'takes'],
    ['no way', known(5, { side: east }), known(5, { side: undefined }), 'takes'],
    ['what is here, by a link', known(5), known(5, { side: east, origin: 'own' }), 'refused'],
    ['a removal, higher', known(5, { side: east }), known(6, { side: undefined, removed: true }), 'takes'],
    [
      'a removal, known',
      known(5, { side: undefined, removed: true }),
      known(5, { side: undefined, removed: true, origin: 'own' }),
      'stands',
    ],
    ['a plain writer’s, again', known(5, { plain: true }), known(6, { plain: true }), 'takes'],
    ['a plain writer’s, of a pusher’s shard', known(5), known(6, { plain: true }), 'refused'],
  ];
  for (const [what, before, claim, verdict] of table) t.is(judgeClaim(before, claim), verdict, what);
  t.like(claimed(known(6, { side: undefined, removed: true }), known(5)), { side: undefined, removed: true, plain: false });
});

test('of those who tell of the highest claim the nearest is chosen that reaches it, and does not lead back', (t) => {
  const table: readonly (readonly [
    what: string,
    before: Choice | undefined,
    offers: Record<string, Offer>,
    side: Side | undefined,
    reached: boolean,
  ])[] = [
    ['the first to tell', undefined, { [east]: anOffer(5) }, east, true],
    ['the highest', aChoice(5, { side: east }), { [east]: anOffer(5), [west]: anOffer(6) }, west, true],
    ['the nearer', undefined, { [east]: anOffer(5, { path: ['far', 'eu'] }), [west]: anOffer(5) }, west, true],
    ['who reaches it', undefined, { [east]: anOffer(5, { reached: false }), [west]: anOffer(5, { path: ['far', 'us'] }) }, west, true],
    ['as it was', aChoice(5, { side: west }), { [east]: anOffer(5), [west]: anOffer(5) }, west, true],
    ['a new claim that nobody reaches', aChoice(5, { side: east }), { [west]: anOffer(6, { reached: false }) }, west, false],
    ['nobody reaches what is known', aChoice(5, { side: east }), { [west]: anOffer(5, { reached: false }) }, east, false],
    ['nobody tells any more', aChoice(5, { side: east }), {}, east, false],
    ['it leads back to us', aChoice(5, { side: east }), { [east]: anOffer(5, { path: ['far', 'own', 'eu'] }) }, undefined, false],
    ['a higher one that leads back', aChoice(5, { side: east }), { [east]: anOffer(6, { path: ['far', 'own', 'eu'] }) }, undefined, false],
    ['removed', aChoice(5, { side: east }), { [west]: anOffer(6, { removed: true }) }, undefined, false],
    ['a pusher here, a lower claim elsewhere', aChoice(5), { [east]: anOffer(4) }, 'local', true],
    ['what is ours by a link', aChoice(5), { [east]: anOffer(5, { origin: 'own', path: ['own', 'eu'] }) }, 'local', true],
  ];
  for (const [what, before, offers, side, reached] of table) t.like(chosen(before, offers), { state: { side }, reached }, what);
  t.is(chosen(undefined, {}), undefined);
});

test('a claim of our own that we do not remember leaves a pusher’s shard to whoever claims it, and a plain writer’s where it is', (t) => {
  const ours = { [east]: anOffer(7, { origin: 'own', moves: 1, path: ['own', 'eu'] }) };

  t.like(chosen(aChoice(5), ours), { state: { incarnation: 7, moves: 1, origin: 'own', side: undefined }, reached: false });
  t.like(chosen(undefined, ours), { state: { incarnation: 7, side: undefined } });
  t.like(chosen(aChoice(5, { plain: true }), ours), {
    state: { incarnation: 8, moves: 0, origin: 'own', side: 'local', plain: true },
    reached: true,
  });
});

for (const [size, events] of [
  [4, 15],
  [6, 40],
  [8, 60],
] as const) {
  test(`caches of a tree agree whose a shard is, and all lead to it, whatever ${events} things happened to ${size} of them`, (t) => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const network = new ClaimNetwork(size, fractions(seeded(seed)));
        const wrong = network.run(events);
        if (wrong !== undefined) throw new Error([wrong, ...network.story].join('\n'));
      }),
      { numRuns: Number(networks), endOnFailure: true },
    );
    t.pass();
  });
}
