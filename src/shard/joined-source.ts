/**
 * Several sources sent as one slice: the ClusterCachedResources of several logical clusters may share an identity.
 *
 *   begin  [part 1: … ]  [part 2: … ]  end      what the parts send from then on, as it comes
 *
 * Q1 The sync covers all parts, or `end` would remove the objects of a part that was not read.
 * Q2 When a part loses its place, or the set of parts changes, the sync of all begins again. A part that does so again and again makes all
 *    of them wait: what it reads in between is no progress.
 * Bounds: one batch of each part.
 */
import type { Clock } from '../domain/ports.js';
import { Notifier } from '../sender/notifier.js';
import { pause } from '../domain/pause.js';
import { ResyncPace } from '../sender/resync-pace.js';
import type { SliceSource, Outgoing } from '../sender/source.js';

type Part = AsyncIterator<readonly Outgoing[]>;
type Arrived = Readonly<{ part: Part; step: Promise<IteratorResult<readonly Outgoing[]>> }>;

type JoinedSourceTools = Readonly<{ clock: Clock; random: () => number }>;

export class JoinedSource implements SliceSource {
  readonly #tools: JoinedSourceTools;
  #parts: readonly SliceSource[];
  #replaced = new AbortController();

  constructor(tools: JoinedSourceTools, parts: readonly SliceSource[]) {
    this.#tools = tools;
    this.#parts = parts;
  }

  get connected(): boolean {
    return this.#parts.every(({ connected }) => connected);
  }

  /** From now on these are the parts; the reader gets a new sync. */
  replace(parts: readonly SliceSource[]): void {
    this.#parts = parts;
    this.#replaced.abort();
    this.#replaced = new AbortController();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[], void> {
    const pace = new ResyncPace(this.#tools);
    while (!signal.aborted) {
      const over = new AbortController();
      const others = AbortSignal.any([signal, this.#replaced.signal]);
      const stop = AbortSignal.any([others, over.signal]);
      const parts = this.#parts.map((part) => part.open(stop)[Symbol.asyncIterator]());
      try {
        yield* this.#send(parts, stop, pace);
      } finally {
        over.abort();
        await Promise.all(parts.map((part) => part.return?.()));
      }
      if (!others.aborted) await pause(this.#tools.clock, pace.wantedMs(), others);
    }
  }

  /** Ends when the sync has to begin again. */
  async *#send(parts: readonly Part[], stop: AbortSignal, pace: ResyncPace): AsyncGenerator<readonly Outgoing[], void> {
    let revision = '';
    yield [{ kind: 'begin', revision }];
    for (const part of parts) {
      const ended = yield* syncOf(part);
      if (ended === undefined) return;
      revision = ended;
    }
    yield [{ kind: 'end', revision }];
    pace.synced();
    yield* changesOf(parts, stop);
  }
}

/** What a part's sync has between its begin and its end; returns its revision, or undefined when it did not come to its end. */
async function* syncOf(part: Part): AsyncGenerator<readonly Outgoing[], string | undefined> {
  for (let begun = false; ;) {
    const { done, value: batch } = await part.next();
    if (done === true) return undefined;
    const begins = batch.filter(({ kind }) => kind === 'begin').length;
    if (begins > (begun ? 0 : 1)) return undefined;
    begun ||= begins > 0;
    const objects = batch.filter(({ kind }) => kind !== 'begin' && kind !== 'end');
    if (objects.length > 0) yield objects;
    const end = batch.find((outgoing) => outgoing.kind === 'end');
    if (end !== undefined) return end.revision;
  }
}

async function* changesOf(parts: readonly Part[], stop: AbortSignal): AsyncGenerator<readonly Outgoing[], void> {
  const arrived: Arrived[] = [];
  const notifier = new Notifier();
  const ask = (part: Part): void => {
    const step = part.next();
    const notify = (): void => {
      arrived.push({ part, step });
      notifier.notify();
    };
    step.then(notify, notify);
  };
  for (const part of parts) ask(part);
  while (!stop.aborted) {
    const seen = notifier.notified;
    for (const { part, step } of arrived.splice(0)) {
      const { done, value: batch } = await step;
      if (done === true || batch.some(({ kind }) => kind === 'begin')) return;
      yield batch;
      ask(part);
    }
    await notifier.after(seen, stop);
  }
}
