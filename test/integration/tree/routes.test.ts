import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { BoundedLog } from '../../../src/diagnostics/bounded-log.js';
import type { ShardState } from '../../../src/domain/claim.js';
import type { Push, PushOutcome } from '../../../src/domain/push.js';
import type { ShardName } from '../../../src/domain/shard.js';
import { childNeighbour, type Neighbour } from '../../../src/domain/via.js';
import { Routes } from '../../../src/tree/routes.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { silent } from '../../support/test-store.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';

const amber = shardName('amber');
const [east, west] = [childNeighbour('east'), childNeighbour('west')];

/**
 * The routes of a cache that knows these shards. The store answers with `outcome`, and publishes
 * only by `publish`.
 */
async function someRoutes(...states: readonly ShardState[]) {
  const [clock, pushes] = [new ManualClock(), new FakePushes()];
  pushes.publish({ shards: [...states] });
  const known = pushes.state;
  const asked: Push[] = [];
  const changed: string[] = [];
  const store: { outcome: PushOutcome } = { outcome: { kind: 'unchanged' } };
  const allowed = new Set([east, west]);
  /** The neighbours whose permission to claim was checked. */
  const checked: Neighbour[] = [];
  const held = new Set<ShardName>();
  const routes = new Routes({
    own: 'own',
    known,
    lane: {
      drained: async () => {},
      push: async (all) => {
        asked.push(...all);
        return all.map(() => store.outcome);
      },
    },
    clock,
    log: new BoundedLog({ clock, log: silent }),
    mayClaim: (_, from) => {
      checked.push(from);
      return from === 'parent' || allowed.has(from);
    },
    hasPusher: (shard) => held.has(shard),
    changed: (shard) => changed.push(shard),
  });
  const publish = (state: ShardState): void => {
    pushes.publish({ shards: [state] });
    routes.follow([state]);
  };
  /** The pushes since the last call, in words. */
  const askedNow = async (): Promise<readonly string[]> => {
    await turn();
    return asked.splice(0).map((push) => (push.kind === 'claim' ? `${push.term} ${push.via ?? 'nobody'}` : push.kind));
  };
  return { routes, clock, askedNow, changed, publish, allowed, checked, held, store };
}

test('a child’s claim is pushed to the store once, and sent to all neighbours with its path once it is published', async (t) => {
  const { routes, askedNow, publish, changed } = await someRoutes();

  routes.receiveClaim(east, aClaimFrame({ path: ['far', 'eu'] }));
  routes.receiveClaim(east, aClaimFrame({ path: ['far', 'eu'] }));
  t.deepEqual(await askedNow(), [`5 ${east}`]);
  t.is(routes.claimFor('parent', amber), undefined);
  publish(aShardState(amber, 5, { via: east }));

  t.deepEqual(await askedNow(), []);
  t.deepEqual(changed, ['amber']);
  t.like(routes.claimFor('parent', amber), { term: 5, origin: 'far', path: ['far', 'eu', 'own'], reached: true, isYours: false });
  t.like(routes.claimFor(east, amber), { isYours: true });
});

test('when a link goes down, the shard moves to another link that reaches it, or stays there unreached', async (t) => {
  const { routes, askedNow, publish, changed } = await someRoutes(aShardState(amber, 5, { via: east }));
  routes.receiveClaim(east, aClaimFrame());
  routes.receiveClaim(west, aClaimFrame({ path: ['far', 'us'] }));
  t.deepEqual(await askedNow(), []);

  routes.down(east);
  t.deepEqual(await askedNow(), [`5 ${west}`]);
  publish(aShardState(amber, 5, { via: west }));
  changed.length = 0;
  routes.down(west);

  t.deepEqual(await askedNow(), []);
  t.deepEqual(changed, ['amber']);
  t.like(routes.claimFor('parent', amber), { path: ['far', 'us', 'own'], reached: false });
});

test('a path back through this cache is not a route; a shard that has no other path loses its via', async (t) => {
  const { routes, askedNow } = await someRoutes(aShardState(amber, 5, { via: east }));

  routes.receiveClaim(west, aClaimFrame({ path: ['far', 'own', 'us'] }));
  t.deepEqual(await askedNow(), []);
  routes.receiveClaim(east, aClaimFrame({ path: ['far', 'own', 'eu'] }));

  t.deepEqual(await askedNow(), ['5 nobody']);
});

test('only a parent’s claim may be far above all known terms, and a claim that the policy no longer covers is forgotten', async (t) => {
  const { routes, askedNow, allowed, publish } = await someRoutes();
  const ahead = 2 ** 42 + 2 ** 20 + 1;

  routes.receiveClaim(east, aClaimFrame({ term: ahead }));
  t.deepEqual(await askedNow(), []);
  routes.receiveClaim(east, aClaimFrame({ term: ahead - 1 }));
  t.deepEqual(await askedNow(), [`${ahead - 1} ${east}`]);
  routes.receiveClaim('parent', aClaimFrame({ term: ahead }));
  t.deepEqual(await askedNow(), [`${ahead} parent`]);
  publish(aShardState(amber, ahead, { via: east }));
  allowed.delete(east);
  routes.policiesChanged();

  t.deepEqual(await askedNow(), [`${ahead} parent`]);
  routes.receiveClaim(east, aClaimFrame({ term: ahead + 1 }));
  t.deepEqual(await askedNow(), []);
});

test('a removal clears the shard after its claim; pushes that the store could not take are retried', async (t) => {
  const { routes, clock, askedNow, store } = await someRoutes(aShardState(amber, 5));
  store.outcome = { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'the disk is full' } };
  routes.receiveClaim(east, aClaimFrame({ term: 6, removed: true }));
  t.deepEqual(await askedNow(), ['6 nobody']);

  store.outcome = { kind: 'unchanged' };
  clock.advance(1_000);

  t.deepEqual(await askedNow(), ['6 nobody', 'clear']);
});

test('a removal that a neighbour confirms needs no permission, and does not count for the neighbour', async (t) => {
  const { routes, askedNow, allowed, checked } = await someRoutes(aShardState(amber, 5, { removed: true, origin: 'far' }));
  allowed.clear();

  t.is(routes.receiveClaim(east, aClaimFrame({ removed: true })), undefined);
  t.deepEqual(checked, []);
  t.regex(String(routes.receiveClaim(east, aClaimFrame({ term: 6, removed: true }))), /policy does not let/);
  t.deepEqual(checked, [east]);
  t.deepEqual(await askedNow(), []);
});

test('after close, nothing is pushed again to a store that refuses', async (t) => {
  const { routes, clock, askedNow, store } = await someRoutes();
  store.outcome = { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'the store is closing' } };
  routes.receiveClaim(east, aClaimFrame());
  t.deepEqual(await askedNow(), [`5 ${east}`]);
  clock.advance(1_000);
  t.deepEqual(await askedNow(), [`5 ${east}`]);

  routes.close();
  clock.advance(60_000);

  t.deepEqual(await askedNow(), []);
});

test('claims are counted per link, without removals and without claims that lead back here', async (t) => {
  const { routes } = await someRoutes(aShardState(amber, 5, { via: east }));
  const [birch, cedar] = [shardName('birch'), shardName('cedar')];
  routes.receiveClaim(east, aClaimFrame());
  routes.receiveClaim(east, aClaimFrame({ shard: birch }));
  routes.receiveClaim(west, aClaimFrame({ path: ['far', 'eu', 'own', 'us'] }));
  routes.receiveClaim(west, aClaimFrame({ shard: cedar, removed: true }));

  t.deepEqual([...routes.claims], [[east, 2]]);
  routes.down(east);
  t.deepEqual([...routes.claims], []);
});

test('a claim says whether the shard has a holder, and the cache knows since when a shard has had none', async (t) => {
  const { routes, askedNow, publish, changed, clock, held } = await someRoutes();
  const birch = shardName('birch');
  held.add(birch);
  publish(aShardState(birch, 5));
  t.like(routes.claimFor('parent', birch), { held: true });
  held.delete(birch);
  t.false(routes.claimFor('parent', birch)?.held);
  await askedNow();

  clock.advance(60_000);
  routes.receiveClaim(east, aClaimFrame());
  t.deepEqual(await askedNow(), [`5 ${east}`]);
  publish(aShardState(amber, 5, { via: east }));
  const claimedMs = clock.now();
  t.is(routes.unheldMs(amber), claimedMs, 'the claim arrives a moment before the pusher holds the shard');
  changed.length = 0;
  routes.receiveClaim(east, aClaimFrame({ held: true }));
  t.deepEqual(changed, ['amber']);
  t.is(routes.unheldMs(amber), undefined);
  t.like(routes.claimFor('parent', amber), { held: true });

  routes.down(east);
  t.is(routes.unheldMs(amber), undefined, 'nobody has reported that the holder has left');
  t.is(routes.unreachedMs(amber), claimedMs);
  clock.advance(1_000);
  routes.receiveClaim(east, aClaimFrame());
  t.is(routes.unheldMs(amber), claimedMs + 1_000);
});
