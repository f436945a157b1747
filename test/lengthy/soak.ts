/**
 * One stretch of ageing: runs pushers, HTTP writers, lasting watches and watches that come and go,
 * and returns what they saw.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../support/crash/random.js';
import { collectionPath, wildcardPath, Writer } from '../support/crash/writers.js';
import type { KubeClient } from '../support/kube-client.js';
import type { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { positionOf, seenList, type Covered } from '../support/watch-history.js';
import { clusters, FloodPusher } from './flood-pusher.js';
import { LongWatch, type LongWatchOptions } from '../support/machines/long-watch.js';
import { RollingHistory } from '../support/machines/rolling-history.js';
import { sample, type Sample } from './vitals.js';

export type Soaked = Readonly<{
  /** Samples under load; `after` is the one once nine of ten objects are gone. */
  load: readonly Sample[];
  after: Sample;
  /** How long `after` is after the last deletion. */
  afterMs: number;
  /** How many changes the watch of everything was behind at most. */
  behindMost: number;
  violations: readonly string[];
  changes: number;
  events: number;
  objectsAfter: number;
}>;

const shards = ['cedar', 'dogwood'];
/** The size of most bodies. */
export const pushedBytes = 1_500;
const pushed = { objects: 4_000, bytes: pushedBytes };
export const removedBytes = 0.9 * shards.length * pushed.objects * pushedBytes;
const httpClients = 4;
const writersPerClient = 4;
const placesPerWriter = 20;
const crowdSize = 200;
const crowdAwayMs = 1_000;
const checkMs = 2_000;
const sampleMs = 250;
const checksBetweenCrowds = 2;
/** The test stops at this size, so that a server without bounds does not fill the disk. */
const diskMiBMax = 3_000;
/** Within this time the server has to give disk back. */
const afterMsMax = 30_000;

export async function soak(
  server: StrataProcess,
  {
    forMs,
    seed,
    isGivenBack,
    onEnd,
  }: Readonly<{
    forMs: number;
    seed: number;
    isGivenBack: (now: Sample) => boolean;
    onEnd: (close: () => Promise<unknown>) => void;
  }>,
): Promise<Soaked> {
  // Uses Go's windows, because each round trip takes turns of two busy event loops. With Node's
  // windows of 64 KiB a reader would get less than is written.
  const connect = (): KubeClient => server.client({ http2: true, goWindows: true });
  const client = connect();
  const born = positionOf(await client.list(wildcardPath));
  const watch = (of: KubeClient, options: Omit<LongWatchOptions, 'position'>): LongWatch =>
    new LongWatch(of, { ...options, position: born });
  const full = watch(connect(), { id: 'full', path: wildcardPath, covered: { covers: () => true } });
  const quiet = connect();
  const stay = [
    watch(quiet, { id: 'shard', path: collectionPath('cedar', '%2A'), covered: { covers: (key) => key.startsWith('cedar|') } }),
    watch(quiet, { id: 'red', path: collectionPath('%2A', 'dogwood-1'), ...red('dogwood-1') }),
    watch(quiet, {
      id: 'one',
      path: wildcardPath,
      query: { fieldSelector: 'metadata.name=p7' },
      covered: { covers: (key) => key.endsWith('|p7') },
    }),
    watch(quiet, { id: 'http', path: collectionPath('amber', '%2A'), covered: { covers: (key) => key.startsWith('amber|') } }),
  ];
  const crowdClients = Array.from({ length: httpClients }, connect);
  const crowd = Array.from({ length: crowdSize }, (_, index) => {
    const query = { fieldSelector: `metadata.name=p${index}` };
    const covered: Covered = { covers: (key) => key.endsWith(`|p${index}`) };
    return watch(crowdClients[index % httpClients]!, { id: `crowd ${index}`, path: wildcardPath, query, covered });
  });
  const watches = [...stay, ...crowd];
  for (const each of [full, ...watches]) each.come();
  onEnd(() => Promise.all([full, ...watches].map((each) => each.leave())));
  const history = new RollingHistory(full, watches);

  const pushers = shards.map((shard) => new FloodPusher(server, { shard, ...pushed }));
  onEnd(() => Promise.all(pushers.map((pusher) => pusher.close())));
  const stop = new AbortController();
  onEnd(async () => stop.abort());
  const writers = Array.from({ length: httpClients }, (_, at) => {
    const of = connect();
    return Array.from({ length: writersPerClient }, (__, index) => {
      const number = at * writersPerClient + index;
      return new Writer(of, seeded(seed + number), { index: number, places: placesPerWriter });
    });
  }).flat();
  const writing = Promise.all(writers.map((writer) => writer.run(stop.signal)));

  const load: Sample[] = [];
  let behindMost = 0;
  const violations: string[] = [];
  const check = async (): Promise<void> => {
    const cluster = `cedar-${load.length % clusters}`;
    const list = await client.list(collectionPath('cedar', cluster));
    history.list(seenList(`list of ${cluster}`, list, ofCluster(cluster)));
    // While writers go on, only answers that name a revision have a place in the history.
    for (const writer of writers) history.answered(writer.acknowledged.splice(0).filter(({ kind }) => kind === 'put'));
    violations.push(...history.check().map(({ guarantee, watch: of, message }) => `${guarantee} ${of}: ${message}`));
  };
  /**
   * A watch resumes from the last revision it read. It must have read everything before it leaves,
   * else that revision would be older than its time away.
   */
  const crowdHasRead = (published: number): Promise<void> => {
    const least = born + BigInt(published);
    return until(() => crowd.every(({ position }) => position >= least));
  };
  const deadline = performance.now() + forMs;
  for (let checks = 0; performance.now() < deadline && violations.length === 0 && full.failure === undefined; checks += 1) {
    const checkAt = performance.now() + checkMs;
    const isAway = checks % checksBetweenCrowds === 1;
    if (isAway) {
      await crowdHasRead((await sample(client, server)).published);
      await Promise.all(crowd.map((each) => each.leave()));
    }
    const back = performance.now() + crowdAwayMs;
    while (performance.now() < (isAway ? back : checkAt)) {
      const now = await sample(client, server);
      load.push(now);
      behindMost = Math.max(behindMost, now.published - Number(full.position - born));
      await sleep(sampleMs);
    }
    if (isAway) {
      for (const each of crowd) each.come();
      // A check blocks this process for seconds, in which no watch could come back.
      await until(() => crowd.every(({ hasRead, failure }) => hasRead || failure !== undefined));
    }
    await check();
    if ((load.at(-1)?.diskMiB ?? 0) > diskMiBMax) {
      violations.push(`the folder has more than ${diskMiBMax} MiB`);
      break;
    }
  }

  for (const pusher of pushers) pusher.leave();
  stop.abort();
  await Promise.all([writing, ...pushers.map(({ left }) => left)]);
  await removeMost(client, [collectionPath('amber', '%2A'), collectionPath('birch', '%2A')]);
  const removedMs = performance.now();
  let after = await sample(client, server);
  while (performance.now() < removedMs + afterMsMax && !isGivenBack(after)) {
    await sleep(sampleMs);
    after = await sample(client, server);
  }
  const afterMs = performance.now() - removedMs;
  await check();
  // These come first: if the full watch failed, the other checks have no truth to compare with.
  violations.unshift(...[full, ...watches].flatMap(({ failure }) => failure ?? []));
  const objectsAfter = (await client.list(wildcardPath)).items.length;
  const { changes, events } = history;
  return { load, after, afterMs, behindMost, violations, changes, events, objectsAfter };
}

async function removeMost(client: KubeClient, collections: readonly string[]): Promise<void> {
  for (const collection of collections) {
    const { items } = await client.list(collection);
    for (const [index, { metadata }] of items.entries()) {
      const { 'kcp.io/cluster': cluster = '', 'kcp.io/shard': shard = '' } = metadata.annotations ?? {};
      if (index % 10 !== 0) await client.delete(`${collectionPath(shard, cluster)}/${metadata.name}`);
    }
  }
}

function ofCluster(cluster: string): Covered {
  return { covers: (key) => key.split('|')[1] === cluster };
}

function red(cluster: string) {
  const covered: Covered = { ...ofCluster(cluster), selects: ({ labels }) => labels['colour'] === 'red' };
  return { covered, query: { labelSelector: 'colour=red' } };
}
