/** How the servers of one etcd detect each other, and a restore of etcd. Uses an etcd in memory. */
import { setImmediate } from 'node:timers/promises';
import { test } from '../../../support/test.js';
import { someServerLives } from '../../../../src/store/etcd/living-servers.js';
import { EtcdPeers } from '../../../../src/store/etcd/peers.js';
import { silent } from '../../../support/test-store.js';
import { ManualClock } from '../../../support/store/manual-clock.js';
import { FakeEtcd } from './fake-etcd.js';

const leaseMs = 10_000;

type Server = Readonly<{
  peers: EtcdPeers;
  looks: () => Promise<boolean>;
  logged: readonly string[];
  isContradicted: () => boolean;
  reach: () => Promise<void>;
}>;

/** A server that has caught up but has not entered. */
async function serverOf(etcd: FakeEtcd, clock: ManualClock, isBehind = (): boolean => false): Promise<Server> {
  const { published, reach: reachNow } = etcd.published();
  const reach = async (): Promise<void> => {
    if (isBehind()) await new Promise(() => {});
    await reachNow();
  };
  await reach();
  const logged: string[] = [];
  let isContradicted = false;
  const parts = {
    client: etcd.client,
    clock,
    log: { ...silent, warn: (event: string) => void logged.push(event) },
    random: Math.random,
    published: published.peers,
  };
  const peers = new EtcdPeers({ ...parts, prefix: '/cache', reach, contradicted: () => (isContradicted = true) });
  const looks = (): Promise<boolean> => someServerLives({ ...parts, reachNewest: reach });
  return { peers, looks, logged, isContradicted: () => isContradicted, reach };
}

/** A server that has entered and joined. */
async function runningServer(etcd: FakeEtcd, clock: ManualClock, isBehind?: () => boolean): Promise<Server> {
  const server = await serverOf(etcd, clock, isBehind);
  await server.peers.enter();
  await server.peers.join();
  return server;
}

/** Lets time pass in steps; after each step, the servers apply all changes. */
async function pass(clock: ManualClock, ms: number, ...servers: readonly Server[]): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    clock.advance(100);
    for (let turns = 0; turns < 5; turns += 1) await setImmediate();
    for (const { reach } of servers) await reach();
  }
}

test('a server that enters again while it reads its heartbeat does not take the change for a restore', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const { peers, isContradicted } = await serverOf(etcd, clock);
  await peers.enter();
  // The server was paused for longer than its lease.
  clock.skip(leaseMs + 1);
  for (const lease of etcd.leases) etcd.expire(lease);

  const answer = etcd.holdNextRead();
  const isKept = peers.isKept();
  await peers.renewFence();
  answer();
  t.true(await isKept);
  t.false(isContradicted());
});

test('a server that lost its lease, though its clock says otherwise, enters again once, and continues', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const server = await runningServer(etcd, clock);
  const [first] = etcd.leases;
  // As after a suspension of the machine, during which its clock stood still.
  etcd.expire(first!);
  t.true(await server.peers.isKept());
  await pass(clock, 5_000, server);
  t.is(etcd.leases.length, 1);
  t.not(etcd.leases[0], first);
  t.false(server.isContradicted());
  await server.peers.leave();
});

test('when etcd is restored, a running server stops its heartbeat and detects the restore within one interval', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const server = await runningServer(etcd, clock);
  const snapshot = etcd.snapshot();
  await pass(clock, 4_000, server);
  etcd.restore(snapshot);
  const other = await serverOf(etcd, clock);
  const looked = other.looks();
  await pass(clock, 12_000, other);
  t.true(server.isContradicted());
  t.false(await looked);
  await server.peers.leave();
});

test('a running server is detected by its heartbeat, a dead one by its silence, whatever remains of its lease', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const running = await runningServer(etcd, clock);
  const dead = await serverOf(etcd, clock);
  await dead.peers.enter();

  const [one, another] = [await serverOf(etcd, clock), await serverOf(etcd, clock)];
  const looked = one.looks();
  await pass(clock, 4_000, one, running);
  t.true(await looked);

  await running.peers.leave();
  await another.reach();
  const lookedAgain = another.looks();
  let isKnown = false;
  void lookedAgain.then(() => (isKnown = true));
  await pass(clock, leaseMs, another);
  t.false(isKnown);
  await pass(clock, 2_000, another);
  t.false(await lookedAgain);
});

for (const [where, isRunningPaused] of [
  ['that starts', false],
  ['that starts, and that of the server that runs,', true],
] as const)
  test(`a pause of the process ${where} does not count as silence`, async (t) => {
    const [etcd, clock, clockOfStarting] = [new FakeEtcd(), new ManualClock(), new ManualClock()];
    const running = await runningServer(etcd, clock);
    const starting = await serverOf(etcd, clockOfStarting);
    let found: boolean | undefined;
    void starting.looks().then((is) => (found = is));
    await pass(clockOfStarting, 1_000, starting);

    clockOfStarting.skip(12_000);
    if (isRunningPaused) clock.skip(12_000);
    else await pass(clock, 12_000, running);
    await pass(clockOfStarting, 1_000);
    await pass(clock, 1_000, running);
    await pass(clockOfStarting, 1_000);
    t.is(found, true);
    await running.peers.leave();
  });

for (const [what, set] of [
  ['is full', (etcd: FakeEtcd, is: boolean) => (etcd.isFull = is)],
  ['does not answer', (etcd: FakeEtcd, is: boolean) => (etcd.isAway = is)],
] as const)
  test(`while etcd ${what}, no server is taken for dead, and the log says so once`, async (t) => {
    const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
    const running = await runningServer(etcd, clock);
    const starting = await serverOf(etcd, clock);
    set(etcd, true);
    let found: boolean | undefined;
    void starting.looks().then((is) => (found = is));
    await pass(clock, 60_000, starting, running);
    t.is(found, undefined);
    t.is(starting.logged.length, 1);
    t.is(running.logged.length, 1);

    set(etcd, false);
    await pass(clock, 5_000, starting, running);
    t.is(found, true);
    t.false(running.isContradicted());
    await running.peers.leave();
  });

test('a dead server no longer counts among the others, and loses the lead, though etcd keeps its lease alive', async (t) => {
  const [etcd, clock, clockOfDead] = [new FakeEtcd(), new ManualClock(), new ManualClock()];
  const dead = await runningServer(etcd, clockOfDead);
  await pass(clockOfDead, 4_000, dead);
  t.not(dead.peers.leadsSinceMs, undefined);
  const running = await runningServer(etcd, clock);

  await pass(clock, 10_000, running);
  t.is(running.peers.others.size, 1);
  await pass(clock, 10_000, running);
  t.is(running.peers.others.size, 0);
  await pass(clock, 15_000, running);
  t.is(running.peers.leadsSinceMs, undefined);
  await pass(clock, 15_000, running);
  t.not(running.peers.leadsSinceMs, undefined);

  // It was frozen; when it continues, it finds that it was replaced.
  await pass(clockOfDead, 4_000, dead);
  t.is(dead.peers.leadsSinceMs, undefined);
  for (const { peers } of [running, dead]) await peers.leave();
});

test('a server that cannot keep its lease alive enters again, though etcd answers everything else', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const server = await runningServer(etcd, clock);
  const [first] = etcd.leases;
  await pass(clock, 4_000, server);
  const since = server.peers.leadsSinceMs;
  t.not(since, undefined);
  etcd.keepsNoLease = true;

  await pass(clock, leaseMs + 4_000, server);

  // The server ended its first lease itself, because etcd may keep the leader's key of that lease
  // for longer.
  t.is(etcd.leases.length, 1);
  t.not(etcd.leases[0], first);
  etcd.keepsNoLease = false;
  await pass(clock, 4_000, server);
  t.true((server.peers.leadsSinceMs ?? 0) > since!);
  await server.peers.leave();
});

test('a silent server does not count among the others, but the running server still knows that it is not alone', async (t) => {
  const [etcd, clock, clockOfFrozen] = [new FakeEtcd(), new ManualClock(), new ManualClock()];
  const running = await runningServer(etcd, clock);
  t.true(running.peers.isAlone);
  const frozen = await runningServer(etcd, clockOfFrozen);

  await pass(clock, 20_000, running);

  t.is(running.peers.others.size, 0);
  t.false(running.peers.isAlone);
  for (const { peers } of [running, frozen]) await peers.leave();
});

test('while etcd is full its leader stays the leader, because somebody has to compact', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const [leader, other] = [await runningServer(etcd, clock), await runningServer(etcd, clock)];
  await pass(clock, 5_000, leader, other);
  const since = leader.peers.leadsSinceMs;
  t.not(since, undefined);

  etcd.isFull = true;
  await pass(clock, 90_000, leader, other);

  t.is(leader.peers.leadsSinceMs, since);
  t.is(other.peers.leadsSinceMs, undefined);
  for (const { peers } of [leader, other]) await peers.leave();
});

test('a leader that is too far behind etcd to raise its heartbeat gives up the lead before another server takes it', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  let isBehind = false;
  const leader = await runningServer(etcd, clock, () => isBehind);
  await pass(clock, 1_000, leader);
  const other = await runningServer(etcd, clock);
  await pass(clock, 5_000, leader, other);
  isBehind = true;

  const led: string[] = [];
  for (let passed = 0; passed < 60_000; passed += 500) {
    await pass(clock, 500, other);
    const who = [leader, other].map(({ peers }) => (peers.leadsSinceMs === undefined ? '-' : 'leads')).join(' ');
    if (led.at(-1) !== who) led.push(who);
  }

  t.deepEqual(led, ['leads -', '- -', '- leads']);
  for (const { peers } of [leader, other]) await peers.leave();
});
