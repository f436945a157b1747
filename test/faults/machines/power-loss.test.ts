/**
 * Loss of power (F3): writes that the server had not synchronised are gone, or partly there. Finds
 * an acknowledged write that is lost, and a watch from the birth of the store whose history is not
 * consistent.
 *
 * TEST_SEED=n repeats the choices of a run, TEST_LOSSES=n loses power at n points.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { PushingWriter } from '../crash/pushing-writer.js';
import { seeded } from '../../support/crash/random.js';
import { wildcardPath, Writer } from '../../support/crash/writers.js';
import { StrataProcess } from '../../support/strata-process.js';
import { validate, type Violation } from '../../support/validators.js';
import { positionOf, seenList, truthOf, WatchRecorder, type Acknowledged } from '../../support/watch-history.js';
import { compiled } from './compiled.js';
import { PowerJournal } from './power-journal.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const losses = Number(process.env['TEST_LOSSES'] ?? 4);
/** The writers stop after this time, once this many writes are acknowledged. */
const writeMs = 1_500;
const acknowledgedMin = 100;
const lookMs = 5;
const everything = { covers: () => true };

test('acknowledged writes survive a loss of power, and the store is in a state that once was', async (t) => {
  t.timeout(60_000 + losses * 20_000);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const folder = await mkdtemp(join(tmpdir(), 'strata-power-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const library = compiled(t, folder, 'power-journal');
  if (library === undefined) return;
  const store = join(folder, 'store');
  const journalFile = join(folder, 'journal');
  const environment: Record<string, string> = { LD_PRELOAD: library, POWER_FOLDER: store, POWER_JOURNAL: journalFile };
  await using server = await StrataProcess.start({ flags: [`--data-directory=${store}`, '--bookmark-interval=100ms'], environment });
  const client = server.client();
  const born = positionOf(await client.list(wildcardPath));
  const begunNs = process.hrtime.bigint();

  const stop = new AbortController();
  const writers = [
    ...Array.from({ length: 4 }, (_, index) => new Writer(client, seeded(seed + index), { index, places: 10 })),
    new PushingWriter(server, seeded(seed - 1), { shard: 'cedar', objects: 10 }),
  ];
  const answered: Readonly<{ ns: bigint; writes: readonly Acknowledged[] }>[] = [];
  let acknowledgedCount = 0;
  const look = (): void => {
    const ns = process.hrtime.bigint();
    const writes = writers.flatMap((writer) => writer.acknowledged.splice(0));
    answered.push({ ns, writes });
    acknowledgedCount += writes.length;
    if (acknowledgedCount > acknowledgedMin && ns - begunNs > BigInt(writeMs) * 1_000_000n) stop.abort();
  };
  const looking = setInterval(look, lookMs);
  await Promise.all(writers.map((writer) => writer.run(stop.signal)));
  clearInterval(looking);
  look();
  await server.kill();

  const journal = PowerJournal.read(journalFile, store);
  const first = journal.operations.findIndex(({ ns }) => ns > begunNs);
  environment['LD_PRELOAD'] = '';
  const violationsAt = async (behind: number): Promise<readonly Violation[]> => {
    const lostNs = journal.operations[behind]?.ns ?? process.hrtime.bigint();
    await server.resume();
    const after = server.client();
    const list = await after.list(wildcardPath);
    const began = { kind: 'behind', position: born } as const;
    const query = { resourceVersion: String(born), allowWatchBookmarks: 'true' };
    const recorder = new WatchRecorder(after, {
      id: `lost at ${behind}`,
      path: wildcardPath,
      began,
      covered: everything,
      options: { query },
    });
    await recorder.until(({ position }) => position >= positionOf(list));
    const watch = await recorder.close();
    await server.kill();
    const acknowledged = answered.filter(({ ns }) => ns < lostNs).flatMap(({ writes }) => writes);
    const lists = [seenList(`lost at ${behind}`, list, everything)];
    return validate({ truth: truthOf(watch.events), watches: [watch], lists, acknowledged, unansweredMax: Infinity });
  };

  for (let loss = 1; loss <= losses; loss += 1) {
    const behind = first + random.below(journal.operations.length - first + 1);
    const kept = random.below(3) / 2;
    journal.lose(behind, kept, random);
    t.deepEqual((await violationsAt(behind)).slice(0, 5), [], `loss ${loss}: after operation ${behind}, ${kept} of the rest kept`);
  }

  // Tests the test: it must find what a disk that lies has lost.
  const end = journal.operations.length;
  journal.lose(end, 0, random, { liesFrom: Math.floor((first + end) / 2) });
  t.true((await violationsAt(end)).some(({ guarantee }) => guarantee === 'G1'));
  t.log(`${losses} losses of power within ${journal.operations.length - first} operations and ${acknowledgedCount} acknowledged writes`);
});
