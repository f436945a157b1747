/** A hub over a memory store, and a clock that the test moves. */
import type { Clock, WatchRequest } from '../../../src/domain/ports.js';
import type { Selector } from '../../../src/domain/syntax/selector.js';
import { parseLabelSelector } from '../../../src/domain/syntax/selector.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { Hub, type HubLimits } from '../../../src/watch/hub.js';
import { Pace } from '../../../src/domain/base/pace.js';
import { SharedSnapshots } from '../../../src/watch/shared-snapshots.js';
import { endlessMemory } from '../../support/an-exchange.js';
import { aScope } from '../../support/objects.js';
import { ASink } from './a-sink.js';
import { MemoryStore } from './memory-store.js';
import { plainEvents } from './plain-events.js';

export const hourMs = 3_600_000;

class TestClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; task: () => void }[] = [];

  now(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  get timers(): number {
    return this.#timers.length;
  }

  after(delayMs: number, task: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, task };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  /** Lets time pass within a turn of the event loop, so that no timer fires. */
  pass(byMs: number): void {
    this.#nowMs += byMs;
  }

  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = next.atMs;
      next.task();
    }
    this.#nowMs = untilMs;
  }
}

export function selecting(labels: string): Selector {
  return { labels: mustParse(parseLabelSelector(labels)), fields: [] };
}

export const everything: Selector = { labels: [], fields: [] };

/** A watch whose sink is full, so that all events are read from the watch. */
export function aWatch(request: Partial<WatchRequest> = {}): WatchRequest {
  return {
    scope: aScope(),
    selector: everything,
    representation: plainEvents(),
    start: { kind: 'after', revision: 0 },
    bookmarks: true,
    timeoutMs: hourMs,
    memory: endlessMemory,
    sink: new ASink({ isFull: true }),
    ...request,
  };
}

export const initial = { kind: 'initial', endsWithBookmark: true, forgetSince: undefined } as const;

class SlowPace extends Pace {
  readonly #clock: TestClock;
  readonly #handOutMs: number;

  constructor(clock: TestClock, handOutMs: number) {
    super(1_000_000, setImmediate);
    this.#clock = clock;
    this.#handOutMs = handOutMs;
  }

  override turn(bytes: number): Promise<void> {
    if (bytes === 0) this.#clock.pass(this.#handOutMs);
    return super.turn(bytes);
  }
}

export type TestHub = Readonly<{ hub: Hub; store: MemoryStore; clock: TestClock; counts: { fellBack: number; sent: number } }>;

/** `handOutMs`: how long each hand-out takes to write. */
export function aHub({ handOutMs = 0, ...limits }: Partial<HubLimits> & { handOutMs?: number } = {}): TestHub {
  const store = new MemoryStore();
  const clock = new TestClock();
  const counts = { fellBack: 0, sent: 0 };
  const snapshots = new SharedSnapshots(
    { objects: store, revisions: store, clock, pace: new Pace(100, setImmediate), changedAt: (scope) => store.changedAt(scope) },
    { sharedBytesMax: 1_000_000 },
    () => {},
  );
  const observe = { fellBack: () => void (counts.fellBack += 1), sent: (events: number) => void (counts.sent += events) };
  const hub = new Hub(
    { clock, commits: store, revisions: store, history: store, objects: store, snapshots, pace: new SlowPace(clock, handOutMs), observe },
    {
      queueBytesMax: 1_000_000,
      pieceBytesMax: 100_000,
      readBytesMax: 100_000,
      bookmarkIntervalMs: 60_000,
      periodFactor: 4,
      periodMsMax: Infinity,
      ...limits,
    },
  );
  return { hub, store, clock, counts };
}
