import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import {
  arrived,
  choose,
  claimed,
  compareClaims,
  decideClaim,
  type Choice,
  type Claim,
  type Offer,
  type ShardState,
  type Verdict,
} from '../../../src/domain/claim.js';
import { childNeighbour, type Neighbour, type Via } from '../../../src/domain/via.js';
import { seeded } from '../../support/crash/random.js';
import { fractions } from '../../simulation/seeded-random.js';
import { shardName } from '../../support/objects.js';
import { ClaimNetwork } from './claim-network.js';

const networks = Number(process.env['TEST_NETWORKS'] ?? rounds(3_000));
const shard = shardName('amber');
const [east, west] = [childNeighbour('east'), childNeighbour('west')];

function known(term: number, state: Partial<ShardState> = {}): ShardState {
  const { via = 'local' } = state;
  return {
    shard,
    term,
    process: `process-${term}`,
    removed: false,
    origin: via === 'local' ? 'own' : 'far',
    via,
    plain: false,
    ...state,
  };
}

function aChoice(term: number, state: Partial<ShardState> = {}, { path = [], reached = true, held = false }: Partial<Choice> = {}): Choice {
  return { state: known(term, state), path, reached, held };
}

function anOffer(term: number, offer: Partial<Offer> = {}): Offer {
  return { term, process: `process-${term}`, removed: false, origin: 'far', path: ['far'], reached: true, held: false, ...offer };
}

function chosen(before: Choice | undefined, offers: Readonly<Record<string, Offer>>): Choice | undefined {
  const heard = Object.entries(offers) as [Neighbour, Offer][];
  const highest = heard
    .map(([, offer]) => offer)
    .toSorted(compareClaims)
    .at(-1);
  return choose('own', before, { shard, highest, offers: new Map(heard) });
}

test('claims are ordered by term, then removal, then the id of their origin', (t) => {
  const rising = [anOffer(4, { removed: true }), anOffer(5), anOffer(5, { origin: 'zone' }), anOffer(5, { removed: true }), anOffer(6)];

  t.deepEqual(rising.toReversed().toSorted(compareClaims), rising);
  t.is(compareClaims(anOffer(5), anOffer(5, { path: [], reached: false })), 0);
});

test('a pusher gets a term above all known ones, and keeps its own term until another pusher connects', (t) => {
  const [clock, far] = [1_000, 2 ** 42];
  const removed = known(5, { via: undefined, removed: true });
  const table: readonly (readonly [
    what: string,
    before: ShardState | undefined,
    named: number,
    process: string,
    given: number | 'the same' | 'fenced',
  ])[] = [
    ['nothing known, for the first time', undefined, 0, 'new', clock],
    ['nothing known, by one that was given something elsewhere', undefined, 7, 'new', 8],
    ['for the first time, where another has it', known(5), 0, 'new', clock],
    ['for the first time, where the clock is behind', known(5_000), 0, 'new', 5_001],
    ['the same again', known(5), 5, 'process-5', 'the same'],
    ['the same, which has not received its last term', known(5), 0, 'process-5', 'the same'],
    ['the same, with what it had before', known(5), 4, 'process-5', 'the same'],
    ['another with the same number: a disk was put back', known(5), 5, 'other', 'fenced'],
    ['one before', known(5), 4, 'other', 'fenced'],
    ['the same, of which the disk has lost something', known(5), 9, 'process-5', 10],
    ['another that was given more elsewhere', known(5), 9, 'other', 10],
    ['the same, which is known elsewhere', known(5, { via: east }), 5, 'process-5', 6],
    ['the same, which is known elsewhere with more', known(7, { via: east, process: 'process-5' }), 5, 'process-5', 8],
    ['another, by the number of who is elsewhere', known(5, { via: east }), 5, 'other', 'fenced'],
    ['the same, of which this cache has forgotten that it was here', known(5, { via: undefined, origin: 'own' }), 5, 'process-5', 6],
    ['after a removal, for the first time', removed, 0, 'new', clock],
    ['after a removal, the process that had it, whose welcome was lost', removed, 0, 'process-5', 'fenced'],
    ['after a removal, the process that had it, given more elsewhere', removed, 6, 'process-5', 7],
    ['after a removal of a plain shard, for the first time', { ...removed, process: '' }, 0, 'new', clock],
    ['after a removal, one before it', removed, 4, 'process-4', 'fenced'],
    ['after a removal, one that was given more elsewhere', removed, 6, 'other', 7],
    ['where it was written over plain HTTP', known(5, { plain: true, process: '' }), 0, 'new', clock],
    ['one that names more than there may be', known(5), far + 2 ** 20 + 1, 'other', 'fenced'],
    ['one that names as much as there may be', known(5), far + 2 ** 20, 'other', far + 2 ** 20 + 1],
  ];
  for (const [what, before, named, process, given] of table) {
    const state = arrived('own', before, { shard, process, term: named, nowMs: clock });
    if (given === 'fenced') t.is(state, undefined, what);
    else if (given === 'the same') t.is(state, before, what);
    else t.deepEqual(state, { shard, term: given, process, removed: false, origin: 'own', via: 'local', plain: false }, what);
  }
  t.is(arrived('own', undefined, { shard, process: 'p', term: 0, nowMs: far * 2 })?.term, far, 'no clock gives a higher term');
});

test('a claim chosen from a link takes the shard if it is higher, or the same over another path', (t) => {
  const table: readonly (readonly [what: string, before: ShardState | undefined, claim: Claim, verdict: Verdict])[] = [
    ['nothing known', undefined, known(5, { via: east }), 'takes'],
    ['higher, of a pusher', known(5), known(6, { via: east }), 'takes'],
    ['lower', known(5, { via: east }), known(4, { via: west }), 'refused'],
    ['the same', known(5, { via: east }), known(5, { via: east }), 'stands'],
    ['another path', known(5, { via: east }), known(5, { via: west }), 'takes'],
    ['no path', known(5, { via: east }), known(5, { via: undefined }), 'takes'],
    ['what is here, by a link', known(5), known(5, { via: east, origin: 'own' }), 'refused'],
    ['a removal, higher', known(5, { via: east }), known(6, { via: undefined, removed: true }), 'takes'],
    ['a removal, known', known(5, { via: undefined, removed: true }), known(5, { via: undefined, removed: true, origin: 'own' }), 'stands'],
    ['a plain writer’s, again', known(5, { plain: true }), known(6, { plain: true }), 'takes'],
    ['a plain writer’s, of a pusher’s shard', known(5), known(6, { plain: true }), 'refused'],
  ];
  for (const [what, before, claim, verdict] of table) t.is(decideClaim(before, claim), verdict, what);
  t.like(claimed(known(6, { via: undefined, removed: true })), { via: undefined, removed: true, plain: false });
});

test('of the neighbours that report the highest claim, a cache chooses the nearest one that is reached without a loop', (t) => {
  const table: readonly (readonly [
    what: string,
    before: Choice | undefined,
    offers: Record<string, Offer>,
    via: Via | undefined,
    reached: boolean,
  ])[] = [
    ['the first to report', undefined, { [east]: anOffer(5) }, east, true],
    ['the highest', aChoice(5, { via: east }), { [east]: anOffer(5), [west]: anOffer(6) }, west, true],
    ['the nearer', undefined, { [east]: anOffer(5, { path: ['far', 'eu'] }), [west]: anOffer(5) }, west, true],
    ['who reaches it', undefined, { [east]: anOffer(5, { reached: false }), [west]: anOffer(5, { path: ['far', 'us'] }) }, west, true],
    ['as it was', aChoice(5, { via: west }), { [east]: anOffer(5), [west]: anOffer(5) }, west, true],
    ['a new claim that nobody reaches', aChoice(5, { via: east }), { [west]: anOffer(6, { reached: false }) }, west, false],
    ['nobody reaches what is known', aChoice(5, { via: east }), { [west]: anOffer(5, { reached: false }) }, east, false],
    ['nobody reports it any more', aChoice(5, { via: east }), {}, east, false],
    ['it leads back to us', aChoice(5, { via: east }), { [east]: anOffer(5, { path: ['far', 'own', 'eu'] }) }, undefined, false],
    ['a higher one that leads back', aChoice(5, { via: east }), { [east]: anOffer(6, { path: ['far', 'own', 'eu'] }) }, undefined, false],
    ['removed', aChoice(5, { via: east }), { [west]: anOffer(6, { removed: true }) }, undefined, false],
    ['a pusher here, a lower claim elsewhere', aChoice(5), { [east]: anOffer(4) }, 'local', true],
    ['what is ours by a link', aChoice(5), { [east]: anOffer(5, { origin: 'own', path: ['own', 'eu'] }) }, 'local', true],
  ];
  for (const [what, before, offers, via, reached] of table) t.like(chosen(before, offers), { state: { via }, reached }, what);
  t.is(chosen(undefined, {}), undefined);
});

test('when a cache receives its own forgotten claim, it gives up a pusher’s shard and keeps a plain writer’s', (t) => {
  const ours = { [east]: anOffer(7, { origin: 'own', path: ['own', 'eu'] }) };

  t.like(chosen(aChoice(5), ours), { state: { term: 7, process: 'process-7', origin: 'own', via: undefined }, reached: false });
  t.like(chosen(undefined, ours), { state: { term: 7, via: undefined } });
  t.like(chosen(aChoice(5, { plain: true }), ours), {
    state: { term: 8, process: '', origin: 'own', via: 'local', plain: true },
    reached: true,
  });
});

for (const [size, events] of [
  [4, 15],
  [6, 40],
  [8, 60],
] as const) {
  test(`caches of a tree agree on the origin of a shard and their vias lead to it, after any ${events} events among ${size} caches`, (t) => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const network = new ClaimNetwork(size, fractions(seeded(seed)));
        const wrong = network.run(events);
        if (wrong !== undefined) throw new Error([wrong, ...network.story].join('\n'));
      }),
      { numRuns: networks, endOnFailure: true },
    );
    t.pass();
  });
}
