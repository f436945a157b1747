import test from 'ava';
import { KnownShards } from '../../src/intake/known-shards.js';
import { Edges } from '../../src/tier/edges.js';
import { OutgoingClaims } from '../../src/tier/outgoing-claims.js';
import { aShardState, FakePushes } from '../intake/fake-pushes.js';
import { aPolicy } from '../support/edge-policies.js';
import { shardName } from '../support/objects.js';

const everything = { up: aPolicy({ shards: ['*'] }), down: aPolicy({ types: ['*'] }) };

async function claimsOf(states: readonly ReturnType<typeof aShardState>[]) {
  const pushes = new FakePushes();
  pushes.shardStates.push(...states);
  return new OutgoingClaims(await KnownShards.open(pushes), 'parent');
}

test('what the other end has is not claimed, what was removed is told, and each is told once', async (t) => {
  const claims = await claimsOf([
    aShardState(shardName('amber'), 5),
    aShardState(shardName('birch'), 6, { side: 'parent' }),
    aShardState(shardName('cedar'), 7, { removed: true }),
  ]);
  const edges = new Edges(everything, everything, 'child/eu');

  const told = claims.take(edges).map(({ shard, incarnation, removed }) => `${shard} ${incarnation} ${removed}`);

  t.deepEqual(told, ['amber 5 false', 'cedar 7 true']);
  t.deepEqual(claims.take(edges), []);
  claims.add(shardName('amber'));
  t.is(claims.take(edges).length, 1);
});

test('what the policies of neither way cover is not claimed', async (t) => {
  const claims = await claimsOf([aShardState(shardName('amber'), 5), aShardState(shardName('birch'), 6)]);
  const onlyBirch = { up: [], down: aPolicy({ types: ['*'], shards: ['birch'] }) };

  t.deepEqual(
    claims.take(new Edges(onlyBirch, everything, 'parent')).map(({ shard }) => shard as string),
    ['birch'],
  );
});

test('a thousand shards are told in more than one turn, and all of them', async (t) => {
  const claims = await claimsOf(Array.from({ length: 1_000 }, (_, i) => aShardState(shardName(`s-${i}`), 5)));
  const edges = new Edges(everything, everything, 'child/eu');

  const first = claims.take(edges).length;

  t.true(first < 1_000 && claims.isDue);
  t.is(first + claims.take(edges).length, 1_000);
  t.false(claims.isDue);
});

test('a child’s claim is heard for what is accepted from it, whatever it follows; a parent’s for all that crosses', (t) => {
  const accepts = { up: aPolicy({ types: ['*'], shards: ['amber'] }), down: aPolicy({ types: ['*'] }) };
  const edges = new Edges(accepts, everything, 'child/eu');

  t.true(edges.hearsClaim(shardName('amber'), 'child/eu'));
  t.false(edges.hearsClaim(shardName('birch'), 'child/eu'));
  t.true(edges.hearsClaim(shardName('birch'), 'parent'));
});
