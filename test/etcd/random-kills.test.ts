/**
 * Two servers of one etcd of three members, all with certificates, behind one address. Servers are killed, members are killed and frozen, under HTTP writes, pushes,
 * and watches that go on at the other server; nothing that a client was answered turns out untrue (see WatchedLoad).
 *
 * TEST_SEED=n repeats the choices of a run, though not its timing. TEST_KILL_MINUTES=n goes on for so long (1).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { seeded, type Random } from '../crash/random.js';
import { WatchedLoad } from '../crash/watched-load.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { members } from './with-members.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const minutes = Number(process.env['TEST_KILL_MINUTES'] ?? 1);

/** What etcd has not answered in time is answered 500 or 503: it may have been written. */
const tolerated = [500, 503, 504];

test('servers and members that are killed break no promise that any of them has made', async (t) => {
  const etcd = await members(t, { members: 3, isSecure: true });
  if (etcd === undefined) return;
  t.timeout((minutes + 5) * 60_000);
  await using _ = etcd;
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  await using servers = await BalancedServers.start(etcd, { flags: ['--bookmark-interval=100ms'] });
  const load = await WatchedLoad.begin(t, Object.assign(servers, { tolerated }), seed);
  const done: string[] = [];

  const untilMs = performance.now() + minutes * 60_000;
  for (let round = 1; performance.now() < untilMs; round += 1) {
    const stop = new AbortController();
    const writing = load.write(stop.signal);
    await sleep(20 + random.below(300));
    const { what, mend } = await harm(random, servers, etcd);
    done.push(what);
    await sleep(random.below(400));
    stop.abort();
    await writing;
    // What is left must serve: only then is it mended.
    await load.check(`round ${round}, ${what}`);
    await mend();
  }

  load.finish();
  t.log(tally(done));
  t.true(load.acknowledged > done.length * 5, 'enough was written to mean something');
});

async function harm(random: Random, servers: BalancedServers, etcd: EtcdMembers): Promise<{ what: string; mend: () => Promise<void> }> {
  const i = random.below(2);
  const member = random.below(3);
  switch (random.below(4)) {
    case 0:
    case 1:
      await servers.kill(i);
      return { what: 'a server killed', mend: () => servers.resume(i) };
    case 2:
      await etcd.signal(member, 'SIGKILL');
      return {
        what: 'a member killed',
        mend: async () => {
          etcd.begin(member);
          await etcd.untilReady(member);
        },
      };
    default:
      await etcd.signal(member, 'SIGSTOP');
      return { what: 'a member frozen', mend: () => etcd.signal(member, 'SIGCONT') };
  }
}

function tally(done: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const what of done) counts.set(what, (counts.get(what) ?? 0) + 1);
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ');
}
