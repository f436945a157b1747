/** How the servers of one etcd know of each other, and of a restore, on an etcd in memory. */
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

/** A server that has caught up. */
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

/** One that runs. */
async function runningServer(etcd: FakeEtcd, clock: ManualClock, isBehind?: () => boolean): Promise<Server> {
  const server = await serverOf(etcd, clock, isBehind);
  await server.peers.enter();
  await server.peers.join();
  return server;
}

/** Time passes in steps, and each server is shown what has changed. */
async function pass(clock: ManualClock, ms: number, ...servers: readonly Server[]): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    clock.advance(100);
    for (let turns = 0; turns < 5; turns += 1) await setImmediate();
    for (const { reach } of servers) await reach();
  }
}

test('a server that enters again while its heartbeat is asked for does not take that for a restore', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const { peers, isContradicted } = await serverOf(etcd, clock);
  await peers.enter();
  // It was paused for longer than its lease.
  clock.skip(leaseMs + 1);
  for (const lease of etcd.leases) etcd.expire(lease);

  const answer = etcd.holdNextRead();
  const isKept = peers.isKept();
  await peers.renewFence();
  answer();
  t.true(await isKept);
  t.false(isContradicted());
});

test('a server whose lease is gone, whatever its clock says of it, enters again once, and goes on', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const server = await runningServer(etcd, clock);
  const [first] = etcd.leases;
  // The clock of a machine that was suspended has stood still.
  etcd.expire(first!);
  t.true(await server.peers.isKept());
  await pass(clock, 5_000, server);
  t.is(etcd.leases.length, 1);
  t.not(etcd.leases[0], first);
  t.false(server.isContradicted());
  await server.peers.leave();
});

test('a server that etcd was restored under raises no heartbeat, and learns of it within one interval', async (t) => {
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

test('a server that runs is seen by its heartbeat, one that does not by its silence, whatever its lease has left', async (t) => {
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
  test(`a pause of the process ${where} is nobody's silence`, async (t) => {
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
  test(`while etcd ${what}, nobody is taken for dead, and the log says so once`, async (t) => {
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

test('a server that died is none of the others, and leads no more, though etcd goes on giving its lease the whole time', async (t) => {
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

  // It was frozen, and finds itself replaced.
  await pass(clockOfDead, 4_000, dead);
  t.is(dead.peers.leadsSinceMs, undefined);
  for (const { peers } of [running, dead]) await peers.leave();
});

test('a server whose lease nobody keeps enters again, though all else is answered', async (t) => {
  const [etcd, clock] = [new FakeEtcd(), new ManualClock()];
  const server = await runningServer(etcd, clock);
  const [first] = etcd.leases;
  await pass(clock, 4_000, server);
  const since = server.peers.leadsSinceMs;
  t.not(since, undefined);
  etcd.keepsNoLease = true;

  await pass(clock, leaseMs + 4_000, server);

  // What named it as the leader lay in the first, which etcd may keep for longer.
  t.is(etcd.leases.length, 1);
  t.not(etcd.leases[0], first);
  etcd.keepsNoLease = false;
  await pass(clock, 4_000, server);
  t.true((server.peers.leadsSinceMs ?? 0) > since!);
  await server.peers.leave();
});

test('a silent server is none of the others, and is to be told all the same', async (t) => {
  const [etcd, clock, clockOfFrozen] = [new FakeEtcd(), new ManualClock(), new ManualClock()];
  const running = await runningServer(etcd, clock);
  t.true(running.peers.isAlone);
  const frozen = await runningServer(etcd, clockOfFrozen);

  await pass(clock, 20_000, running);

  t.is(running.peers.others.size, 0);
  t.false(running.peers.isAlone);
  for (const { peers } of [running, frozen]) await peers.leave();
});

test('while etcd is full its leader leads on, because somebody has to compact', async (t) => {
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

test('a leader that is too far behind etcd to raise its heartbeat leads no more before another one does', async (t) => {
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
