import { test } from '../../support/test.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { Frame } from '../../../src/frames/frame.js';
import { LinkFilters } from '../../../src/tree/filters/link-filters.js';
import { OutgoingClaims } from '../../../src/tree/links/outgoing-claims.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy } from '../../support/link-rules.js';
import { shardName } from '../../support/objects.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';

const everything = { up: aPolicy({ shards: ['*'] }), down: aPolicy({ types: ['*'] }) };

async function claimsOf(names: readonly string[], { isYours = false } = {}) {
  const [clock, pushes] = [new ManualClock(), new FakePushes()];
  pushes.publish({ shards: names.map((name) => aShardState(shardName(name), 5)) });
  const known = pushes.state;
  let rings = 0;
  const sent: Frame[] = [];
  const held = new Set<ShardName>();
  const claims = new OutgoingClaims(
    {
      known,
      connection: { send: (frame) => sent.push(frame) },
      inventory: { isSent: (shard) => held.has(shard), sendOf: (shard) => held.add(shard) },
      claimFor: (_, shard) => (known.shard(shard) === undefined ? undefined : aClaimFrame({ shard, isYours })),
      clock,
      notify: () => rings++,
    },
    'parent',
  );
  /** The claims sent in one turn. */
  const sentNow = (): readonly string[] => {
    claims.send();
    return sent.splice(0).flatMap((frame) => (frame.kind === 'claim' ? [`${frame.shard}${frame.isYours ? ' yours' : ''}`] : []));
  };
  return { claims, clock, rings: () => rings, sentNow, held };
}

test('every shard is sent once, and again when it has changed', async (t) => {
  const { claims, sentNow } = await claimsOf(['amber', 'birch']);

  t.deepEqual(sentNow(), ['amber', 'birch']);
  t.deepEqual(sentNow(), []);
  claims.add(shardName('birch'));
  claims.add(shardName('unknown'));
  t.deepEqual(sentNow(), ['birch']);
});

test('a neighbour newly chosen for a shard first gets `isYours: false` and the held slices, once for each choice', async (t) => {
  const { claims, sentNow, held } = await claimsOf(['amber'], { isYours: true });

  t.deepEqual(sentNow(), ['amber', 'amber yours']);
  claims.add(shardName('amber'));
  t.deepEqual(sentNow(), ['amber yours']);
  held.clear();
  claims.add(shardName('amber'));
  t.deepEqual(sentNow(), ['amber', 'amber yours']);
});

test('a shard that changes all the time is sent four times in a burst, then once a second, and always in its latest state', async (t) => {
  const { claims, clock, rings, sentNow } = await claimsOf(['amber', 'birch']);
  const sent = Array.from({ length: 20 }, () => {
    claims.add(shardName('amber'));
    return sentNow().filter((text) => text === 'amber').length;
  });
  t.deepEqual(sent.slice(0, 5), [1, 1, 1, 1, 0]);
  t.false(sent.slice(4).includes(1));
  const notify = rings();

  clock.advance(1_000);

  t.is(rings(), notify + 1);
  t.deepEqual(sentNow(), ['amber']);
  clock.advance(1_000);
  t.deepEqual(sentNow(), []);
});

test('a thousand shards take more than one turn, and all are sent', async (t) => {
  const { sentNow } = await claimsOf(Array.from({ length: 1_000 }, (_, i) => `s-${i}`));

  const first = sentNow().length;

  t.true(first < 1_000);
  t.is(first + sentNow().length, 1_000);
});

test('a child’s claim is accepted if its accept covers the shard, whatever the filter lets through; a parent’s always is', (t) => {
  const accepts = { up: aPolicy({ types: ['*'], shards: ['amber'] }), down: aPolicy({ types: ['*'] }) };
  const filters = new LinkFilters(accepts, { up: [], down: [] }, 'child/eu');

  t.true(filters.acceptsClaim(shardName('amber'), 'child/eu'));
  t.false(filters.acceptsClaim(shardName('birch'), 'child/eu'));
  t.true(filters.acceptsClaim(shardName('birch'), 'parent'));
  t.true(new LinkFilters({ up: [], down: [] }, everything, 'parent').acceptsClaim(shardName('birch'), 'parent'));
});
