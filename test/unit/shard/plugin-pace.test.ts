import { test } from '../../support/test.js';
import { PluginPace } from '../../../src/shard/kubeconfig/plugin-pace.js';
import { ManualClock } from '../../support/store/manual-clock.js';

function setUp(): { clock: ManualClock; pace: PluginPace } {
  const clock = new ManualClock();
  return { clock, pace: new PluginPace(clock) };
}

test('failures double the wait up to half a minute', (t) => {
  const { clock, pace } = setUp();
  const waitsMs = [pace.waitMs()];
  for (let failure = 0; failure < 7; failure += 1) {
    clock.advance(waitsMs.at(-1) ?? 0);
    pace.failed();
    waitsMs.push(pace.waitMs());
  }

  t.deepEqual(waitsMs, [0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test('a credential that is refused at once counts as a failure of the plugin, whatever it issues', (t) => {
  const { clock, pace } = setUp();
  const waitsMs: number[] = [];
  for (let refusal = 0; refusal < 3; refusal += 1) {
    pace.issued();
    clock.advance(10);
    pace.refused();
    waitsMs.push(pace.waitMs());
    clock.advance(pace.waitMs());
  }

  t.deepEqual(waitsMs, [1_000, 2_000, 4_000]);
});

test('a credential that has lasted a minute is replaced at once, and failures count from zero again', (t) => {
  const { clock, pace } = setUp();
  pace.failed();
  pace.failed();
  clock.advance(2_000);
  pace.issued();
  clock.advance(60_000);

  pace.refused();
  t.is(pace.waitMs(), 0);
  pace.failed();
  t.is(pace.waitMs(), 1_000);
});

test('a credential that has expired when it is issued does not start the plugin for each request', (t) => {
  const { pace } = setUp();
  pace.issued();

  t.is(pace.waitMs(), 1_000);
});
