/**
 * How long does a program's look-up take, and does the number of slices in the cache matter?
 *
 * Bare caches send 20,000 and then 90,000 slices of 22 types over links, on as many shards as that
 * needs. One program looks up objects of one type with `CacheReader`, one after the other, over
 * TLS. Some exist, each in its own logical cluster, and some do not.
 *
 * Each look-up first asks for a new freshness report, as the first look-up of each second does.
 * Then a report is used for a second, which is the default. Then the type is watched, so that no
 * object is requested.
 */
import { CacheFault, openCacheReader, type CacheReader, type ObjectRef, type WatchedRef } from '../../src/client.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { until } from '../../test/support/test-server.js';
import { BareCache, manySlices, type OfSlice } from '../harness/bare-cache.js';
import { percentile } from '../harness/statistics.js';
import { check, type Answer, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const typesEach = kcpTypes.length;
/** One cache may claim 1,000 shards, so `feeders` caches send those of a run. */
const runs = [
  { shards: 910, feeders: 1 },
  { shards: 4_095, feeders: 5 },
] as const;
const lookUps = 200;
const medianMsMax = 3;
const shownCharacters = 300;
const followedMsMax = 30_000;
const policy = JSON.stringify([{ types: ['*'] }]);
const type = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports' };

export const lookUp: Question = {
  name: 'look-up',
  family: 'requests',
  asks: 'How long does a look-up take a program, and does the number of slices in the cache matter?',
  needs: ['push'],
  isLong: true,
  async ask(): Promise<Answer> {
    const answers: Answer[] = [];
    for (const { shards, feeders } of runs) answers.push(await askAt(shards, feeders));
    return { figures: answers.flatMap(({ figures }) => figures), checks: answers.flatMap(({ checks }) => checks) };
  },
};

async function askAt(shards: number, feeders: number): Promise<Answer> {
  await using tree = await TreeProcesses.open();
  const cache = await tree.start('asked');
  const slices = manySlices(shards * typesEach).map((each): OfSlice => ({ ...each, cluster: `of-${each.slice.shard}` }));
  const fed: BareCache[] = [];
  for (let at = 0; at < feeders; at++) {
    const from = Math.ceil((shards / feeders) * at) * typesEach;
    fed.push(await feed(cache, `feeder-${at}`, slices.slice(from, Math.ceil((shards / feeders) * (at + 1)) * typesEach)));
  }
  const clusters = Array.from({ length: lookUps }, (_, i) => `of-shard-${Math.floor((i * shards) / lookUps)}`);
  const found = clusters.map((cluster) => ({ ...type, cluster, name: 'one' }));
  const absent = clusters.map((cluster) => ({ ...type, cluster, name: 'none' }));
  const [unshared, shared, watching] = [readerOf(cache, { reportAgeMaxMs: 0 }), readerOf(cache, {}), readerOf(cache, {}, [type])];
  await until(() => watching.watching()[0]?.kind === 'following', followedMsMax);
  const answers = [
    await looked(unshared, `${slices.length} slices: an object that exists`, found),
    await looked(unshared, '… looked up again', found),
    await looked(unshared, '… one that does not', absent),
    await looked(shared, '… that exists, default bounds', found),
    await looked(shared, '… that does not, default bounds', absent),
    await looked(watching, '… that exists, watched', found),
    await looked(watching, '… that does not, watched', absent),
  ];
  for (const reader of [unshared, shared, watching]) reader.close();
  for (const feeder of fed) await feeder.close();
  return { figures: answers.flatMap(({ figures }) => figures), checks: answers.flatMap(({ checks }) => checks) };
}

async function feed(cache: StrataProcess, name: string, slices: readonly OfSlice[]): Promise<BareCache> {
  const feeder = await BareCache.open(cache, name);
  feeder.policy(policy, '[]');
  feeder.resume();
  await feeder.claim(slices);
  await feeder.begin(slices);
  await feeder.send(slices);
  await feeder.report(slices);
  return feeder;
}

function readerOf(cache: StrataProcess, bounds: Readonly<{ reportAgeMaxMs?: number }>, watch: readonly WatchedRef[] = []): CacheReader {
  const { certificate, key } = cache.master;
  return openCacheReader({
    cache: `https://127.0.0.1:${cache.port}`,
    identity: { ca: cache.certificate, certificate, key },
    bounds,
    watch,
  });
}

/** The first look-up, which opens the connection, does not count. */
async function looked(reader: CacheReader, name: string, refs: readonly ObjectRef[]): Promise<Answer> {
  const wrong: string[] = [];
  const takenMs: number[] = [];
  await faultOf(reader, refs[0]!);
  for (const ref of refs) {
    const startedAt = performance.now();
    const fault = await faultOf(reader, ref);
    takenMs.push(performance.now() - startedAt);
    if (fault !== undefined) wrong.push(fault);
  }
  const note = `p50 of ${refs.length}, p99 ${percentile(takenMs, 0.99).toFixed(1)} ms`;
  return {
    figures: [{ name, value: percentile(takenMs, 0.5), unit: 'ms', limit: { kind: 'at most', value: medianMsMax }, note }],
    checks: [check(`${name}: every answer is right`, wrong.length === 0, `${wrong.length} were not, ${wrong[0] ?? ''}`)],
  };
}

/**
 * Returns what is wrong with an answer. An existing object must come with its freshness, and the
 * absence of a missing one must be proved.
 */
async function faultOf(reader: CacheReader, ref: ObjectRef): Promise<string | undefined> {
  try {
    const answer = await reader.get(ref);
    const isRight =
      ref.name === 'one' ? answer.kind === 'found' && answer.freshness?.whole === true : answer.kind === 'absent' && answer.whole;
    return isRight ? undefined : JSON.stringify(answer).slice(0, shownCharacters);
  } catch (error) {
    if (error instanceof CacheFault) return error.message;
    throw error;
  }
}
