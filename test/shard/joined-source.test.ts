import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { SliceSource, Outgoing } from '../../src/sender/source.js';
import { JoinedSource } from '../../src/shard/joined-source.js';
import { ManualClock } from '../store/manual-clock.js';

const begin: Outgoing = { kind: 'begin', revision: '' };
const end: Outgoing = { kind: 'end', revision: '7' };

/** Syncs, and breaks off in the way a test asks. */
class Part implements SliceSource {
  readonly connected = true;
  opened = 0;
  /** `within`: in its sync; `behind`: it loses its position afterwards. */
  breaks: 'within' | 'behind' | undefined;
  #lose: () => void = () => {};

  lose(): void {
    this.#lose();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    this.opened += 1;
    yield [begin];
    if (this.breaks === 'within') yield [begin];
    yield [end];
    await new Promise<void>((resolve) => {
      this.#lose = resolve;
      if (this.breaks === 'behind') resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    if (!signal.aborted) yield [begin, end];
  }
}

/** Two parts, and a reader of both. */
function reading(t: ExecutionContext) {
  const clock = new ManualClock();
  const parts = [new Part(), new Part()] as const;
  const joined = new JoinedSource({ clock, random: () => 0.5 }, parts);
  const abort = new AbortController();
  const received: string[] = [];
  const ended = (async () => {
    for await (const batch of joined.open(abort.signal)) received.push(...batch.map(({ kind }) => kind));
  })();
  t.teardown(() => (abort.abort(), ended));
  return { clock, parts, joined, abort, received, ended };
}

async function advance(clock: ManualClock, ms: number, steps = 1): Promise<void> {
  for (let step = 0; step < steps; step += 1) {
    clock.advance(ms / steps);
    for (let i = 0; i < 20; i += 1) await turn();
  }
}

for (const how of ['within', 'behind'] as const) {
  test(`parts are read ever more seldom while one of them always breaks ${how} its sync`, async (t) => {
    const { clock, parts } = reading(t);
    parts[1].breaks = how;

    await advance(clock, 60_000, 600);

    t.true(parts[0].opened >= 5 && parts[0].opened <= 8, `opened ${parts[0].opened} times in a minute`);
    t.is(parts[0].opened, parts[1].opened);
  });
}

test('the first lost position, and one after a calm time, resyncs all parts at once', async (t) => {
  const { clock, parts, received } = reading(t);
  await advance(clock, 0);

  parts[0].lose();
  await advance(clock, 0, 3);
  t.is(parts[1].opened, 2);
  await advance(clock, 60_000);
  parts[1].lose();
  await advance(clock, 0, 3);

  t.is(parts[0].opened, 3);
  t.deepEqual(received, ['begin', 'end', 'begin', 'end', 'begin', 'end']);
});

test('new parts are read at once, though the former ones were being waited for', async (t) => {
  const { clock, parts, joined } = reading(t);
  parts[0].breaks = 'within';
  await advance(clock, 10_000, 100);
  const other = new Part();

  joined.replace([other]);
  await advance(clock, 0, 3);

  t.is(other.opened, 1);
});

test('a reader that stops while parts are waited for leaves nothing behind', async (t) => {
  const { clock, parts, abort, ended } = reading(t);
  parts[0].breaks = 'within';
  await advance(clock, 10_000, 100);

  abort.abort();
  await ended;

  t.is(clock.pending, 0);
});
