/** A cache's record of the choices that the other end of a link makes. */
import { test } from '../../support/test.js';
import { ChosenShards } from '../../../src/tree/links/chosen-shards.js';
import { shardName } from '../../support/objects.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';

test('once a link names as many shards as it may, a newer claim still replaces the former claim of a known shard', (t) => {
  const amber = shardName('amber');
  const held = [amber, ...Array.from({ length: 99_999 }, (_, i) => shardName(`shard-${i}`))];
  const claim = aClaimFrame({ term: 7, isYours: true });
  const here = { ...claim, via: 'local' as const, plain: false };
  const taken = new ChosenShards({ shard: (shard) => (shard === amber ? here : undefined) }, 'parent', held);

  t.true(taken.learnChoice(claim));
  t.true(taken.isAgreed(amber));

  t.true(taken.learnChoice(aClaimFrame({ shard: shardName('one-more'), isYours: true })));
  t.false(taken.has(shardName('one-more')));
});
