/**
 * The server is killed while it is written to, again and again, and nothing that anybody was told turns out untrue (F1):
 * every acknowledged write is there (G1), no version falls or is used twice (G9), and every watch goes on from where it was
 * without a gap, a repeat or a 410 (G2 … G7). TEST_SEED=n repeats the choices of a run, though not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { StrataProcess } from '../support/strata-process.js';
import { validate } from '../support/validators.js';
import { positionOf, seenList, truthOf, WatchRecorder, type Covered, type SeenList, type SeenWatch } from '../support/watch-history.js';
import { reused, unacknowledgedOrLost } from './judge.js';
import { seeded } from './random.js';
import { wildcardPath, Writer } from './writers.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const kills = Number(process.env['TEST_KILLS'] ?? 20);
const writersMax = 8;
const everything: Covered = { covers: () => true };

const watched: Readonly<Record<string, Readonly<{ covered: Covered; query: Readonly<Record<string, string>> }>>> = {
  all: { covered: everything, query: {} },
  red: { covered: { covers: () => true, selects: ({ labels }) => labels['colour'] === 'red' }, query: { labelSelector: 'colour=red' } },
};

test('a server that is killed keeps every promise it has made', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  await using server = await StrataProcess.start({ environment: { STRATA_BOOKMARK_INTERVAL: '100ms' } });
  const client = server.client();
  const writers = Array.from(
    { length: writersMax },
    (_, index) => new Writer(server.client(), seeded(seed + index + 1), { index, places: 6 }),
  );
  const born = positionOf(await client.list(wildcardPath));
  const watches: SeenWatch[] = [];
  const lists: SeenList[] = [];
  const resumeFrom = new Map(Object.keys(watched).map((name) => [name, { position: born, id: undefined as string | undefined }]));
  let highest = born;

  for (let round = 1; round <= kills; round++) {
    const list = await client.list(wildcardPath);
    t.true(positionOf(list) >= highest, `round ${round}: the list is at ${positionOf(list)}, ${highest} was seen before`);
    for (const writer of writers) writer.lookAgain(list.items);
    const begun = Object.entries(watched).map(([name, { covered, query }]) => {
      const { position, id } = resumeFrom.get(name)!;
      return begin(client, { id: `${name} ${round}`, position, covered, query, ...(id === undefined ? {} : { resumes: id }) });
    });
    const behindList = begin(client, { id: `listed ${round}`, position: positionOf(list), covered: everything, query: {} });
    lists.push(seenList(`list ${round}`, list, everything, behindList.id));

    const stop = new AbortController();
    const writing = Promise.all(writers.map((writer) => writer.run(stop.signal)));
    await Promise.race([sleep(20 + random.below(300)), writing]);
    await server.kill();
    stop.abort();
    await writing;
    for (const recorder of [...begun, behindList]) watches.push(await recorder.close());

    for (const name of Object.keys(watched)) {
      const recorder = begun.find(({ id }) => id === `${name} ${round}`)!;
      resumeFrom.set(name, { position: recorder.position, id: recorder.id });
      if (recorder.position > highest) highest = recorder.position;
    }
    for (const write of writers.flatMap(({ acknowledged }) => acknowledged.slice(-1)))
      if (write.kind === 'put' && write.position > highest) highest = write.position;
    // Now and then it dies while it starts, too.
    if (random.chance(0.2)) await diesWhileItStarts(server, random.below(250));
    await server.resume();
  }

  const last = await client.list(wildcardPath);
  const full = begin(client, { id: 'full', position: born, covered: everything, query: {} });
  await full.until(({ position }) => position >= positionOf(last));
  const resumed = Object.entries(watched).map(([name, { covered, query }]) => {
    const { position, id } = resumeFrom.get(name)!;
    return begin(client, { id: `${name} at last`, position, covered, query, ...(id === undefined ? {} : { resumes: id }) });
  });
  for (const recorder of resumed) await recorder.until(({ position }) => position >= positionOf(last));
  for (const recorder of [full, ...resumed]) watches.push(await recorder.close());
  lists.push(seenList('last list', last, everything));

  const truth = truthOf(full.events);
  const acknowledged = writers.flatMap((writer) => writer.acknowledged);
  const events = watches.reduce((sum, watch) => sum + watch.events.length, 0);
  t.log(
    `${kills} kills, ${acknowledged.length} acknowledged writes, ${truth.length} changes, ${events} events on ${watches.length} watches`,
  );
  t.true(acknowledged.length > kills * 5, 'enough was written to mean something');
  t.deepEqual(unacknowledgedOrLost(truth, acknowledged, kills), []);
  t.deepEqual(validate({ truth, watches, lists }), []);
  const told = [
    ...acknowledged.flatMap((write) => (write.kind === 'put' ? [{ position: write.position, what: `${write.key} ${write.turn}` }] : [])),
    ...watches.flatMap(({ id, events: seen }) =>
      id.startsWith('red')
        ? []
        : seen
            .filter(({ type }) => type === 'ADDED' || type === 'MODIFIED')
            .map(({ position, key, labels }) => ({ position, what: `${key} ${labels['turn']}` })),
    ),
  ];
  t.deepEqual(reused(told), []);
  const epochs = new Set(told.map(({ position }) => position / 10n ** 10n));
  t.true(epochs.size > kills / 2, 'every start begins an epoch, and nobody has to start over');
});

test('the judge finds what is lost, what nobody was told of, and a version that is used twice', (t) => {
  const put = (position: bigint, turn: string) => ({ kind: 'put', key: 'k', position, turn }) as const;
  const change = (kind: 'put' | 'delete', position: bigint, turn = '') => ({ kind, key: 'k', position, labels: { turn } }) as const;
  const truth = [change('put', 1n, 'a'), change('delete', 2n), change('put', 3n, 'b')];

  t.deepEqual(unacknowledgedOrLost(truth, [put(1n, 'a'), { kind: 'delete', key: 'k', behind: 1n }, put(3n, 'b')], 0), []);
  t.deepEqual(unacknowledgedOrLost(truth, [put(1n, 'a'), put(3n, 'b')], 1), []);
  t.is(unacknowledgedOrLost(truth, [put(1n, 'a'), put(3n, 'b')], 0).length, 1);
  t.is(unacknowledgedOrLost(truth, [put(1n, 'a'), put(4n, 'c')], 9).length, 1);
  t.is(unacknowledgedOrLost(truth, [put(3n, 'b'), put(1n, 'a')], 9).length, 1, 'out of order');
  t.is(unacknowledgedOrLost(truth, [{ kind: 'delete', key: 'k', behind: 2n }], 9).length, 1);
  t.is(unacknowledgedOrLost(truth, [], 1).length, 1);
  t.deepEqual(
    reused([
      { position: 1n, what: 'a' },
      { position: 1n, what: 'a' },
      { position: 2n, what: 'b' },
      { position: 1n, what: 'c' },
    ]),
    ['1 was a and then c'],
  );
});

function begin(
  client: ReturnType<StrataProcess['client']>,
  watch: { id: string; position: bigint; covered: Covered; query: Readonly<Record<string, string>>; resumes?: string },
): WatchRecorder {
  const { id, position, covered, query, resumes } = watch;
  const options = { query: { resourceVersion: String(position), allowWatchBookmarks: 'true', ...query } };
  const recorder = new WatchRecorder(client, {
    id,
    path: wildcardPath,
    began: { kind: 'behind', position },
    covered,
    options,
    ...(resumes === undefined ? {} : { resumes }),
  });
  // It ends when the server is killed; `close` answers what it saw.
  recorder.ended().catch(() => {});
  return recorder;
}

async function diesWhileItStarts(server: StrataProcess, afterMs: number): Promise<void> {
  const starting = server.resume().catch(() => {});
  await sleep(afterMs);
  await server.kill();
  await starting;
}
