/**
 * Two servers behind one address, on an etcd of three members with certificates, under HTTP writes,
 * pushes and watches. Servers are killed; members are killed, also right after a compaction, or
 * frozen; the network to a member is slow, silent or broken. Finds an answer to a client that this
 * made untrue (see WatchedLoad).
 *
 * TEST_SEED=n repeats the choices of a run, but not its timing. TEST_KILL_MINUTES=n runs n minutes
 * (1).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { WatchedLoad } from '../crash/watched-load.js';
import { wildcardPath } from '../../support/crash/writers.js';
import type { KubeClient } from '../../support/kube-client.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { members } from './with-members.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const minutes = Number(process.env['TEST_KILL_MINUTES'] ?? 0.5);

/** Codes of writes that etcd has not answered in time: they may have happened. */
const tolerated = [500, 503, 504];

test('killed servers and members break no promise that a server has made', async (t) => {
  const etcd = await members(t, { members: 3, isSecure: true });
  if (etcd === undefined) return;
  t.timeout((minutes + 5) * 60_000);
  await using _ = etcd;
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const networks = await Promise.all(etcd.endpoints.map((url) => TcpProxy.start(Number(new URL(url).port))));
  t.teardown(() => Promise.all(networks.map((network) => network.close())));
  const reached = { endpoints: networks.map(({ port }) => `https://127.0.0.1:${port}`), tls: etcd.tls };
  await using servers = await BalancedServers.start(reached, { flags: ['--bookmark-interval=100ms'] });
  const room = etcd.client();
  t.teardown(() => room.close());
  const load = await WatchedLoad.begin(t, Object.assign(servers, { tolerated }), seed);
  const done: string[] = [];

  const untilMs = performance.now() + minutes * 60_000;
  for (let round = 1; performance.now() < untilMs; round += 1) {
    const passed = await room.revision();
    // All informers are past that revision; these reads make sure that the servers are as well.
    for (const server of servers.servers) await untilAnswered(server.client());
    const stop = new AbortController();
    const writing = load.write(stop.signal);
    await sleep(20 + random.below(300));
    const { what, mend } = await harm(random, { servers, etcd, networks, compact: () => room.compact(passed) });
    done.push(what);
    await sleep(random.below(400));
    stop.abort();
    await writing;
    // Checked before anything is mended, because what is left must serve.
    await load.check(`round ${round}, ${what}`);
    await mend();
  }

  load.finish();
  t.log(tally(done));
  t.true(load.acknowledged > done.length * 5, 'enough was written to mean something');
});

async function untilAnswered(client: KubeClient): Promise<void> {
  await until(async () => (await client.raw('GET', `${wildcardPath}?limit=1`)).status === 200, 15_000);
  client.close();
}

type Harmed = Readonly<{
  servers: BalancedServers;
  etcd: EtcdMembers;
  /** The network between the servers and each member, by member. */
  networks: readonly TcpProxy[];
  compact: () => Promise<void>;
}>;

async function harm(
  random: Random,
  { servers, etcd, networks, compact }: Harmed,
): Promise<Readonly<{ what: string; mend: () => Promise<void> }>> {
  const i = random.below(2);
  const member = random.below(3);
  const network = networks[member]!;
  const heal = async (): Promise<void> => network.heal();
  const begin = async (): Promise<void> => {
    etcd.begin(member);
    await etcd.untilReady(member);
  };
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2:
      await servers.kill(i);
      return { what: 'a server killed', mend: () => servers.resume(i) };
    case 3:
      await etcd.signal(member, 'SIGKILL');
      return { what: 'a member killed', mend: begin };
    case 4:
      await compact();
      await etcd.signal(member, 'SIGKILL');
      return { what: 'a member killed that compacts', mend: begin };
    case 5:
      await etcd.freeze(member);
      return { what: 'a member frozen', mend: async () => etcd.thaw(member) };
    case 6:
      network.delay(20 + random.below(230));
      return { what: 'a slow network', mend: heal };
    default:
      if (random.below(2) === 0) network.blackhole();
      else {
        network.refuse();
        network.cut();
      }
      return { what: 'a silent or broken network', mend: heal };
  }
}

function tally(done: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const what of done) counts.set(what, (counts.get(what) ?? 0) + 1);
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ');
}
