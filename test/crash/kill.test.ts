/**
 * The server is killed while it is written to, over HTTP and by pushers, again and again, and nothing that anybody was told turns out untrue (F1):
 * every acknowledged write is there (G1), no version falls or is used twice (G9), and every informer goes on from where it was
 * without a gap, a repeat or a 410 (G2 … G8).
 *
 * TEST_SEED=n repeats the choices of a run, though not its timing. TEST_KILLS=n kills n times: 1,000 take some twenty minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { LongWatch } from '../machines/long-watch.js';
import { RollingHistory } from '../machines/rolling-history.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { validate } from '../support/validators.js';
import { positionOf, seenList, type Covered, type Sighting } from '../support/watch-history.js';
import { PushingWriter } from './pushing-writer.js';
import { seeded } from './random.js';
import { collectionPath, wildcardPath, Writer } from './writers.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const kills = Number(process.env['TEST_KILLS'] ?? 20);
const writersMax = 8;
const roundMsMax = 600_000;

const everything: Covered = { covers: () => true };
const red: Covered = { covers: () => true, selects: ({ labels }) => labels['colour'] === 'red' };
const cedar: Covered = { covers: (key) => key.startsWith('cedar|') };

test('a server that is killed keeps every promise it has made', async (t) => {
  t.timeout(kills * 10_000 + roundMsMax);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  await using server = await StrataProcess.start({ flags: ['--bookmark-interval=100ms'] });
  const clients = [server.client({ http2: false }), server.client({ http2: true })] as const;
  const [client] = clients;
  const writers = Array.from(
    { length: writersMax },
    (_, index) => new Writer(clients[index % 2]!, seeded(seed + index + 1), { index, places: 6 }),
  );
  const pushers = ['cedar', 'dogwood'].map((shard, index) => new PushingWriter(server, seeded(seed - index - 1), { shard, objects: 20 }));
  const position = positionOf(await client.list(wildcardPath));
  const full = new LongWatch(server.client({ http2: true }), { id: 'full', path: wildcardPath, position, covered: everything });
  const watches = [
    new LongWatch(server.client({ http2: false }), { id: 'all', path: wildcardPath, position, covered: everything }),
    new LongWatch(server.client({ http2: true }), {
      id: 'red',
      path: wildcardPath,
      query: { labelSelector: 'colour=red' },
      position,
      covered: red,
    }),
    new LongWatch(server.client({ http2: true }), { id: 'cedar', path: collectionPath('cedar', '%2A'), position, covered: cedar }),
  ];
  const informers = [full, ...watches];
  for (const informer of informers) informer.come();
  t.teardown(() => Promise.all(informers.map((informer) => informer.leave())));
  const history = new RollingHistory(full, watches);
  const sightings: Sighting[] = [];
  let acknowledged = 0;

  for (let round = 1; round <= kills; round += 1) {
    const killing = new AbortController();
    const writing = Promise.all([...writers.map((writer) => writer.run(killing.signal)), ...pushers.map((pusher) => pusher.run())]);
    await Promise.race([sleep(20 + random.below(300)), writing]);
    await server.kill();
    killing.abort();
    await writing;
    // Now and then it dies while it starts, too.
    if (random.chance(0.2)) await diesWhileItStarts(server, random.below(250));
    await server.resume();

    const askedMs = performance.now();
    const list = await client.list(wildcardPath);
    sightings.push({ position: positionOf(list), askedMs, answeredMs: performance.now() });
    for (const writer of writers) writer.lookAgain(list.items);
    history.list(seenList(`list ${round}`, list, everything));
    const answers = [...writers, ...pushers].flatMap((writer) => writer.acknowledged.splice(0));
    acknowledged += answers.length;
    // What a pusher was not answered may happen when it comes back.
    const unanswered = round * writersMax + pushers.reduce((sum, pusher) => sum + pusher.unanswered, 0);
    history.answered(answers);
    const isUpToDate = (): boolean =>
      informers.every((informer) => informer.position >= positionOf(list) || informer.failure !== undefined);
    await until(isUpToDate, 15_000).catch(() => {});
    t.true(isUpToDate(), `round ${round}: an informer did not come back: ${informers.map((informer) => informer.position).join(' ')}`);
    t.deepEqual(
      informers.flatMap(({ failure }) => failure ?? []),
      [],
      `round ${round}`,
    );
    for (const { type, position: at, key, labels } of full.events)
      if (type !== 'DELETED' && type !== 'BOOKMARK')
        sightings.push({ position: at, what: `${key} ${labels['turn']}`, askedMs: 0, answeredMs: Infinity });
    for (const write of answers)
      if (write.kind === 'put' && write.position !== undefined)
        sightings.push({ position: write.position, what: `${write.key} ${write.turn}`, askedMs: 0, answeredMs: askedMs });

    t.deepEqual(history.check().slice(0, 10), [], `round ${round}`);
    t.true(history.changes <= acknowledged + unanswered, `round ${round}: more changes than writes`);
  }

  t.log(`${kills} kills, ${acknowledged} acknowledged writes, ${history.changes} changes, ${history.events} events`);
  t.true(acknowledged > kills * 5, 'enough was written to mean something');
  t.deepEqual(validate({ truth: [], watches: [], lists: [], sightings }, ['G9']), []);
});

async function diesWhileItStarts(server: StrataProcess, afterMs: number): Promise<void> {
  const starting = server.resume().catch(() => {});
  await sleep(afterMs);
  await server.kill();
  await starting;
}
