/**
 * Several sources told as one slice: the ClusterCachedResources of several logical clusters may share an identity.
 *
 *   begin  [part 1: … ]  [part 2: … ]  end      what the parts tell from then on, as it comes
 *
 * Q1 The statement covers all parts, or `end` would remove what a part was not asked for.
 * Q2 A part that lost its place, or another set of parts, begins the statement of all again. One that loses it again and again makes all of
 *    them wait: what it reads between is no progress of theirs.
 * Bounds: one batch of each part.
 */
import type { Clock } from '../domain/ports.js';
import { Bell } from '../sender/bell.js';
import { pause } from '../domain/pause.js';
import { RestatePace } from '../sender/restate-pace.js';
import type { SliceSource, Told } from '../sender/source.js';

type Part = AsyncIterator<readonly Told[]>;
type Arrived = Readonly<{ part: Part; step: Promise<IteratorResult<readonly Told[]>> }>;

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

  /** From now on these are the parts; whoever reads is told a new statement. */
  replace(parts: readonly SliceSource[]): void {
    this.#parts = parts;
    this.#replaced.abort();
    this.#replaced = new AbortController();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Told[], void> {
    const pace = new RestatePace(this.#tools);
    while (!signal.aborted) {
      const over = new AbortController();
      const others = AbortSignal.any([signal, this.#replaced.signal]);
      const stop = AbortSignal.any([others, over.signal]);
      const parts = this.#parts.map((part) => part.open(stop)[Symbol.asyncIterator]());
      try {
        yield* this.#tell(parts, stop, pace);
      } finally {
        over.abort();
        await Promise.all(parts.map((part) => part.return?.()));
      }
      if (!others.aborted) await pause(this.#tools.clock, pace.wantedMs(), others);
    }
  }

  /** Ends when it has to be begun again. */
  async *#tell(parts: readonly Part[], stop: AbortSignal, pace: RestatePace): AsyncGenerator<readonly Told[], void> {
    let revision = '';
    yield [{ kind: 'begin', revision }];
    for (const part of parts) {
      const ended = yield* statementOf(part);
      if (ended === undefined) return;
      revision = ended;
    }
    yield [{ kind: 'end', revision }];
    pace.stated();
    yield* changesOf(parts, stop);
  }
}

/** Everything up to the end of a part's statement, without its bounds; its revision, or undefined when it did not come to its end. */
async function* statementOf(part: Part): AsyncGenerator<readonly Told[], string | undefined> {
  for (let begun = false; ;) {
    const { done, value: batch } = await part.next();
    if (done === true) return undefined;
    const begins = batch.filter(({ kind }) => kind === 'begin').length;
    if (begins > (begun ? 0 : 1)) return undefined;
    begun ||= begins > 0;
    const objects = batch.filter(({ kind }) => kind !== 'begin' && kind !== 'end');
    if (objects.length > 0) yield objects;
    const end = batch.find((told) => told.kind === 'end');
    if (end !== undefined) return end.revision;
  }
}

async function* changesOf(parts: readonly Part[], stop: AbortSignal): AsyncGenerator<readonly Told[], void> {
  const arrived: Arrived[] = [];
  const bell = new Bell();
  const ask = (part: Part): void => {
    const step = part.next();
    const ring = (): void => {
      arrived.push({ part, step });
      bell.ring();
    };
    step.then(ring, ring);
  };
  for (const part of parts) ask(part);
  while (!stop.aborted) {
    const seen = bell.rings;
    for (const { part, step } of arrived.splice(0)) {
      const { done, value: batch } = await step;
      if (done === true || batch.some(({ kind }) => kind === 'begin')) return;
      yield batch;
      ask(part);
    }
    await bell.after(seen, stop);
  }
}
