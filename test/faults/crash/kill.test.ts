/**
 * Kills a server again and again under HTTP writes and pushes. Finds an answer to a client that a
 * kill made untrue (F1; see WatchedLoad).
 *
 * TEST_SEED=n repeats the choices of a run, but not its timing. TEST_KILLS=n kills n times: 1,000
 * take some twenty minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { seeded } from '../../support/crash/random.js';
import { WatchedLoad } from './watched-load.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const kills = Number(process.env['TEST_KILLS'] ?? 10);
const roundMsMax = 600_000;

test('a server that is killed keeps every promise it has made', async (t) => {
  t.timeout(kills * 10_000 + roundMsMax);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  await using server = await StrataProcess.start({ flags: ['--bookmark-interval=100ms'] });
  const load = await WatchedLoad.begin(t, server, seed);

  for (let round = 1; round <= kills; round += 1) {
    const killing = new AbortController();
    const writing = load.write(killing.signal);
    // Waits for answers as well: a busy machine answers little in so short a time.
    const [forMs, answers] = [20 + random.below(300), random.below(20)];
    const longEnough = sleep(forMs).then(() => until(() => load.answered >= answers || killing.signal.aborted));
    await Promise.race([longEnough, writing]);
    await server.kill();
    killing.abort();
    await writing;
    if (random.chance(0.2)) await diesWhileItStarts(server, random.below(250));
    await server.resume();
    await load.check(`round ${round}`);
  }

  load.finish();
  t.true(load.acknowledged > kills * 5, 'enough was written to mean something');
});

async function diesWhileItStarts(server: StrataProcess, afterMs: number): Promise<void> {
  const starting = server.resume().catch(() => {});
  await sleep(afterMs);
  await server.kill();
  await starting;
}
