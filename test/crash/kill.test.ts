/**
 * The server is killed while it is written to, again and again, and nothing that anybody was told turns out untrue (F1):
 * every acknowledged write is there (G1), no version falls or is used twice (G9), and every watch goes on from where it was
 * without a gap, a repeat or a 410 (G2 … G7). TEST_SEED=n repeats the choices of a run, though not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { StrataProcess } from '../support/strata-process.js';
import { validate } from '../support/validators.js';
import {
  positionOf,
  seenList,
  truthOf,
  WatchRecorder,
  type Covered,
  type Position,
  type SeenList,
  type SeenWatch,
  type Sighting,
} from '../support/watch-history.js';
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
  const sightings = [
    ...acknowledged.flatMap((write) => (write.kind === 'put' ? [seenOnce(write.position, `${write.key} ${write.turn}`)] : [])),
    ...watches.flatMap(({ events: seen }) =>
      seen
        .filter(({ type }) => type === 'ADDED' || type === 'MODIFIED')
        .map(({ position, key, labels }) => seenOnce(position, `${key} ${labels['turn']}`)),
    ),
  ];
  t.deepEqual(validate({ truth, watches, lists, acknowledged, unansweredMax: kills, sightings }), []);
  const epochs = new Set(sightings.map(({ position }) => position / 10n ** 12n));
  t.is(epochs.size, 1, 'no new epoch: nobody has to start over');
  t.false((await server.log()).includes('store.rolled-back'));
});

/** Something that happened at a revision, whenever that was. */
function seenOnce(position: Position, what: string): Sighting {
  return { position, what, askedMs: 0, answeredMs: 0 };
}

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
