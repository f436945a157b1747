import test from 'ava';
import fc from 'fast-check';
import { claimed, judgeClaim, outranks, raised, type Claim, type Rank, type ShardState, type Verdict } from '../../src/domain/claim.js';
import { childSide, type Side } from '../../src/domain/side.js';
import { shardName } from '../support/objects.js';

const shard = shardName('amber');
const child = childSide('east');

function aClaim(incarnation: number, claim: Partial<Claim> = {}): Claim {
  return { shard, incarnation, moves: 0, side: 'local', removed: false, ...claim };
}

function known(incarnation: number, state: Partial<ShardState> = {}): ShardState {
  return { shard, incarnation, moves: 0, side: 'local', removed: false, plain: false, ...state };
}

test('of two claims the higher takes the shard; what an equal or a lower one comes to depends on who makes it', (t) => {
  const removed = known(5, { side: undefined, removed: true });
  const table: readonly (readonly [
    what: string,
    before: ShardState | undefined,
    higher: Verdict,
    equal: Verdict,
    lower: Verdict,
    side: Side,
  ])[] = [
    ['nothing known', undefined, 'takes', 'takes', 'takes', child],
    ['the same link', known(5, { side: child }), 'takes', 'stands', 'stands', child],
    ['the same parent', known(5, { side: 'parent' }), 'takes', 'stands', 'stands', 'parent'],
    ['another pusher', known(5), 'takes', 'stands', 'refused', 'local'],
    ['another side', known(5, { side: 'parent' }), 'takes', 'refused', 'refused', child],
    ['a pusher, of a shard of a link', known(5, { side: child }), 'takes', 'refused', 'refused', 'local'],
    ['a link, of a shard of a pusher', known(5, { incarnation: 5, moves: 2 }), 'takes', 'refused', 'refused', child],
    ['removed', removed, 'takes', 'refused', 'refused', 'local'],
    ['removed, a link', removed, 'takes', 'refused', 'refused', child],
  ];
  for (const [what, before, higher, equal, lower, side] of table) {
    t.is(judgeClaim(before, aClaim(6, { side })), higher, `${what}: higher`);
    if (before?.side !== 'local' || side === 'local')
      t.is(judgeClaim(before, aClaim(5, { side, moves: 3 })), higher, `${what}: as high, moved since`);
    t.is(judgeClaim(before, aClaim(5, { side })), equal, `${what}: equal`);
    t.is(judgeClaim(before, aClaim(4, { side, moves: 9 })), lower, `${what}: lower`);
  }
});

test('what a link says of the incarnation that is at home here is an echo: it takes nothing, and is raised above', (t) => {
  const home = known(5, { moves: 2 });
  const echo = aClaim(5, { side: child, moves: 7 });

  t.is(judgeClaim(home, echo), 'refused');
  t.like(raised(home, echo), { side: 'local', incarnation: 5, moves: 8 });
  t.is(judgeClaim(home, raised(home, echo) ?? echo), 'takes');
  t.like(raised(home, aClaim(5, { side: child, moves: 2 })), { moves: 3 });
  t.is(raised(home, aClaim(5, { side: child, moves: 1 })), undefined);
  t.is(raised(known(5, { side: 'parent' }), echo), undefined);
  t.is(raised(home, aClaim(5, { side: child, moves: 256 })), undefined);
  t.is(judgeClaim(home, aClaim(6, { side: child })), 'takes');
});

test('a plain writer’s shard that is raised stays a plain writer’s', (t) => {
  const home = known(1, { plain: true });

  t.true(claimed(aClaim(1, { moves: 1 }), home).plain);
  t.false(claimed(aClaim(2), home).plain);
  t.false(claimed(aClaim(1, { side: child }), home).plain);
});

test('nothing is raised above what is no echo, what is lower anyway, or what was raised too often', (t) => {
  const home = known(5, { moves: 3 });

  t.is(raised(home, aClaim(5, { side: child, moves: 2 })), undefined);
  t.is(raised(home, aClaim(6, { side: child })), undefined);
  t.is(raised(home, aClaim(5, { side: child, moves: 300 })), undefined);
  t.is(raised(home, aClaim(5, { side: child, moves: 9, removed: true })), undefined);
  t.is(raised(known(5, { side: 'parent' }), aClaim(5, { side: child, moves: 9 })), undefined);
});

test('a removal takes a shard by its rank alone, and is no news where it is known', (t) => {
  const removal = (incarnation: number): Claim => aClaim(incarnation, { side: child, removed: true });
  const removed = known(5, { side: undefined, removed: true });

  t.is(judgeClaim(undefined, removal(1)), 'takes');
  t.is(judgeClaim(known(5, { side: child }), removal(6)), 'takes');
  t.is(judgeClaim(known(5, { side: child }), removal(5)), 'refused');
  t.is(judgeClaim(removed, removal(6)), 'takes');
  t.is(judgeClaim(removed, removal(5)), 'stands');
  t.is(judgeClaim(removed, removal(4)), 'refused');
});

test('what is known of a removed shard names no side', (t) => {
  t.like(claimed(aClaim(7, { side: child, moves: 2 })), { side: child, incarnation: 7, moves: 2, removed: false, plain: false });
  t.like(claimed(aClaim(7, { side: child, removed: true })), { side: undefined, incarnation: 7, removed: true });
});

const anyClaim: fc.Arbitrary<Claim> = fc
  .record({
    incarnation: fc.integer({ min: 1, max: 4 }),
    moves: fc.integer({ min: 0, max: 2 }),
    side: fc.constantFrom<Side>('parent', child, childSide('west')),
    removed: fc.boolean(),
  })
  .map((parts) => ({ shard, ...parts }));

function hear(claims: readonly Claim[]): ShardState | undefined {
  return claims.reduce<ShardState | undefined>(
    (state, claim) => (judgeClaim(state, claim) === 'takes' ? claimed(claim) : state),
    undefined,
  );
}

function rankOf(state: ShardState | undefined): Rank | undefined {
  return state && { incarnation: state.incarnation, moves: state.moves };
}

test('caches that hear the same claims, in whatever order and however often, end with the same incarnation, and rank where none is at home', (t) => {
  fc.assert(
    fc.property(fc.array(anyClaim, { maxLength: 8 }), fc.infiniteStream(fc.nat()), fc.array(fc.nat()), (claims, keys, again) => {
      const shuffled = [...claims]
        .map((claim) => ({ claim, at: keys.next().value ?? 0 }))
        .toSorted((one, other) => one.at - other.at)
        .map(({ claim }) => claim);
      const repeated = [...shuffled, ...again.flatMap((i) => claims[i % Math.max(1, claims.length)] ?? [])];

      const ofLinks = (heard: readonly Claim[]): readonly Claim[] => heard.filter(({ side }) => side !== 'local');
      t.is(hear(repeated)?.incarnation, hear(claims)?.incarnation);
      t.deepEqual(rankOf(hear(ofLinks(repeated))), rankOf(hear(ofLinks(claims))));
    }),
  );
});

test('where one claim is above all others, everybody ends with its side; the rank never falls', (t) => {
  fc.assert(
    fc.property(fc.array(anyClaim, { maxLength: 8 }), anyClaim, fc.nat({ max: 8 }), (claims, best, at) => {
      const highest: Claim = { ...best, incarnation: 9 };
      const heard = [...claims.slice(0, at), highest, ...claims.slice(at)];
      const states = heard.map((_, i) => hear(heard.slice(0, i + 1)));

      t.is(states.at(-1)?.side, highest.removed ? undefined : highest.side);
      states.forEach((state, i) => {
        const before = i === 0 ? undefined : states[i - 1];
        t.false(before !== undefined && state !== undefined && outranks(before, state));
      });
    }),
  );
});
