import { test } from '../../support/test.js';
import type { Caller } from '../../../src/domain/caller.js';
import type { ShardState } from '../../../src/domain/claim.js';
import { PlainWrites } from '../../../src/intake/writes/plain-writes.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const holdMs = 30_000;
const master: Caller = { user: 'admin', groups: ['system:masters'] };
const kcpOf = (shard: string): Caller => ({ user: 'kcp', groups: ['strata'], speaksFor: { kind: 'shard', shard: shardName(shard) } });

async function aPlainWrites({ shard, changedMs = 0 }: Readonly<{ shard?: ShardState; changedMs?: number }>) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  if (shard !== undefined) pushes.publish({ shards: [shard] });
  pushes.hold(aSlice(), { changedMs: changedMs === 0 ? 0 : clock.now() + changedMs });
  const seen = { ms: 0, hasPusher: false, hasLivePusher: false, overwritten: [] as string[] };
  const known = pushes.state;
  const startedMs = clock.now();
  const plainWrites = new PlainWrites(
    {
      own: 'here',
      known,
      clock,
      pushers: {
        hasPusher: () => seen.hasPusher,
        hasLivePusher: () => seen.hasLivePusher,
        overwritten: (slice) => void seen.overwritten.push(slice.resource.resource),
      },
      seenMs: () => seen.ms,
      runningSinceMs: () => startedMs,
    },
    { holdMs },
  );
  const judged = (caller = master): string => {
    const judgement = plainWrites.decide(amber, caller);
    return judgement.kind === 'refused' ? judgement.refusal.reason : (judgement.as ?? 'writes');
  };
  return { clock, pushes, seen, judged, plainWrites };
}

test('a shard that has no via or is local may be written, whichever writer was seen', async (t) => {
  for (const shard of [undefined, aShardState(amber, 5), aShardState(amber, 5, { removed: true })]) {
    const { judged, clock } = await aPlainWrites(shard === undefined ? {} : { shard });

    t.is(judged(), 'writes');
    clock.advance(holdMs);
    t.is(judged(), 'writes');
  }
});

test('while a local shard has a pusher, only that pusher and the shard itself may write it', async (t) => {
  const { judged, seen } = await aPlainWrites({ shard: aShardState(amber, 5) });

  seen.hasPusher = true;
  t.is(judged(), 'Conflict');
  t.is(judged(kcpOf('birch')), 'Conflict');
  t.is(judged(kcpOf('amber')), 'bySource');
  seen.hasPusher = false;
  seen.hasLivePusher = true;
  t.is(judged(), 'Conflict', 'its server may enter again');
  seen.hasLivePusher = false;
  t.is(judged(), 'writes');
  t.is(judged(kcpOf('amber')), 'writes');
});

test('the last write to a shard is kept until the shard is removed', async (t) => {
  const { plainWrites, pushes, clock } = await aPlainWrites({ shard: aShardState(amber, 5) });
  plainWrites.recordWrite(amber);
  plainWrites.recordWrite(shardName('unknown'));
  t.deepEqual(plainWrites.lastWritesHere(), new Map([[amber, clock.now()]]));

  pushes.publish({ shards: [aShardState(amber, 6, { removed: true })] });
  t.deepEqual(plainWrites.lastWritesHere(), new Map());
});

test('a pusher that connects during a plain write must sync again, unless the shard itself made the write', async (t) => {
  const { plainWrites, seen } = await aPlainWrites({ shard: aShardState(amber, 5) });
  const before = plainWrites.decide(amber, master);

  seen.hasPusher = true;
  const beside = plainWrites.decide(amber, kcpOf('amber'));
  for (const judged of [beside, before]) if (judged.kind === 'writes') plainWrites.written(aSlice(), judged);
  t.deepEqual(seen.overwritten, ['apiexports']);
  seen.hasPusher = false;
  if (before.kind === 'writes') plainWrites.written(aSlice(), before);
  t.is(seen.overwritten.length, 1);
});

test('a plain writer’s shard has no pusher that could block writes, though one may connect', async (t) => {
  const { judged, seen } = await aPlainWrites({ shard: aShardState(amber, 5, { plain: true }) });

  seen.hasPusher = true;
  t.is(judged(), 'writes');
});

test('a plain write to a shard behind a link is refused during the hold, then takes the shard over', async (t) => {
  const { judged, clock } = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'parent' }) });

  t.is(judged(), 'Conflict');
  clock.advance(holdMs - 1);
  t.is(judged(), 'Conflict');
  clock.advance(1);
  t.is(judged(), 'takes');
});

test('a new change, or a writer that was seen, renews the hold', async (t) => {
  const changed = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'parent' }), changedMs: 10_000 });
  const seen = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'child/east' }) });

  for (const { clock } of [changed, seen]) clock.advance(holdMs + 9_999);
  seen.seen.ms = seen.clock.now() - 1;

  t.is(changed.judged(), 'Conflict');
  t.is(seen.judged(), 'Conflict');
  changed.clock.advance(1);
  t.is(changed.judged(), 'takes');
});

test('a change dated hours ahead by a wrong clock does not prolong the hold', async (t) => {
  const { judged, clock } = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'child/east' }), changedMs: 3 * 3_600_000 });

  t.is(judged(), 'Conflict');
  clock.advance(holdMs);
  t.is(judged(), 'takes');
});

test('a refusal names the cache at which the shard is written', async (t) => {
  const parent = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'parent' }) });
  const child = await aPlainWrites({ shard: aShardState(amber, 5, { via: 'child/east' }) });
  const message = ({ plainWrites }: typeof parent): string => {
    const judgement = plainWrites.decide(amber, master);
    return judgement.kind === 'refused' ? judgement.refusal.message : '';
  };

  t.regex(message(parent), /above or beside/);
  t.regex(message(child), /child east/);
});
