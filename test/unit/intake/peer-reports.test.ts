import { test } from '../../support/test.js';
import { PushSessions } from '../../../src/intake/push/push-sessions.js';
import { PeerReports } from '../../../src/intake/push/peer-reports.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { apiExports } from '../../support/intake/a-receiver.js';
import { FakePeers } from '../../support/intake/fake-peers.js';
import { FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');

function aServer() {
  const [clock, peers] = [new ManualClock(), new FakePeers()];
  const sessions = new PushSessions(new FakePushes(), clock.now());
  const lastWritesHere = new Map<ReturnType<typeof shardName>, number>();
  const heardElsewhere: string[] = [];
  const plainWrites = { lastWritesHere: () => lastWritesHere, recordWriteElsewhere: (shard: string) => void heardElsewhere.push(shard) };
  const known = { slicesOf: () => [] };
  const told = new PeerReports({ peers, sessions, known, plainWrites, clock });
  const enter = (shard = amber): void =>
    sessions.enter(
      shard,
      {
        process: 'p',
        term: 5,
        peer: '10.0.0.1',
        silentSinceMs: () => undefined,
        named: () => undefined,
        bye: () => {},
        dropped: () => {},
        declared: () => {},
        overwritten: () => {},
      },
      clock.now(),
    );
  return { clock, peers, sessions, told, heardHere: lastWritesHere, heardElsewhere, enter };
}

test('a server publishes nothing while it is alone, and everything as soon as another one appears', (t) => {
  const { clock, peers, enter } = aServer();
  enter();
  clock.advance(5_000);
  t.deepEqual(peers.told, []);

  peers.hear('b', {});
  t.is(peers.told.at(-1)?.pushers.get(amber)?.peer, '10.0.0.1');
});

test('a server publishes a new pusher at once, its reports within a second, and no repetition', (t) => {
  const { clock, peers, sessions, enter } = aServer();
  peers.hear('b', {});
  enter();
  t.is(peers.told.length, 1);
  sessions.recordStatus(
    amber,
    { freshness: [{ slice: apiExports, connected: true, synced: true, lagMs: 1_200, whole: true }], withdrawn: [] },
    0,
  );
  t.is(peers.told.length, 1);
  clock.advance(1_000);

  t.deepEqual(peers.told.at(-1)?.pushers.get(amber), { peer: '10.0.0.1', isHeld: true, connected: true, lagMs: 2_000, whole: true });
  clock.advance(10_000);
  t.is(peers.told.length, 2);
});

test('a server names types that are not whole, up to 256 KiB of names for all shards and 2 KiB for each', (t) => {
  const { peers, sessions, clock, enter } = aServer();
  const shards = Array.from({ length: 200 }, (_, i) => shardName(`shard-${i}`));
  const lacking = (shard: typeof amber, characters: number): void => {
    enter(shard);
    const resource = { group: '', resource: 'r'.repeat(characters - 1), identity: '' };
    sessions.recordStatus(
      shard,
      { freshness: [{ slice: { shard, resource }, connected: true, synced: true, lagMs: 0, whole: false }], withdrawn: [] },
      0,
    );
  };
  lacking(amber, 2_049);
  for (const shard of shards) lacking(shard, 2_048);
  peers.hear('b', {});
  clock.advance(1_000);

  const pushers = peers.told.at(-1)!.pushers;
  t.is(pushers.size, 201);
  t.is(pushers.get(amber)?.lacks, undefined);
  t.is([...pushers.values()].filter(({ lacks }) => lacks?.size === 1).length, 128);
});

test('plain writers are published at most every five seconds, and those of other servers are noted when they change', (t) => {
  const { clock, peers, heardHere, heardElsewhere } = aServer();
  peers.hear('b', { lastWrites: new Map([[amber, 7]]) });
  peers.hear('b', { lastWrites: new Map([[amber, 7]]) });
  t.deepEqual(heardElsewhere, ['amber']);
  peers.hear('b', { lastWrites: new Map([[amber, 8]]) });
  t.deepEqual(heardElsewhere, ['amber', 'amber']);

  for (let second = 0; second < 12; second += 1) {
    heardHere.set(amber, clock.now());
    clock.advance(1_000);
  }
  t.is(peers.told.length, 3, 'at the start, and after five and ten seconds');

  heardHere.delete(amber);
  clock.advance(1_000);
  t.deepEqual(peers.told.at(-1)?.lastWrites, new Map(), 'the shard was removed');
});

test('a server that stops publishes nothing more', (t) => {
  const { clock, peers, told, enter } = aServer();
  peers.hear('b', {});
  told.close();
  enter();
  clock.advance(5_000);
  t.deepEqual(peers.told, []);
});
