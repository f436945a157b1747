/**
 * Runs the receiving half of a link (inflow.ts decides): has the store decide in order what came, and acknowledges as it becomes
 * durable. Nothing is read while the store has no room.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { shown } from '../diagnostics/shown.js';
import type { Claim, ShardState } from '../domain/claim.js';
import { unreachable } from '../domain/errors.js';
import type { Clock, PushLane } from '../domain/ports.js';
import type { Push, PushOutcome } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Credit, FrameOf } from '../frames/frame.js';
import { Acks } from '../intake/acks.js';
import { creditOf } from '../intake/frame-credit.js';
import { putParts, turnMax } from '../intake/frame-parts.js';
import { newInflow, step } from './inflow.js';
import type { InflowContext, InflowEffect, InflowEvent, InflowState, LinkWork, NumberedFrame } from './inflow-state.js';

const nothing: Credit = { mutations: 0, bytes: 0 };

export type LinkInflowParts = Readonly<{
  connection: FrameConnection;
  lane: PushLane;
  clock: Clock;
  turn: () => Promise<void>;
  log: BoundedLog;
  metrics: Pick<Metrics, 'refusals' | 'pushes' | 'digestsDiffered'>;
  /** The shard has come to the other end: what is held of it here is to be told. */
  hold: (shard: ShardName) => void;
  /** The other end has not heard of the claim that has the shard. */
  answer: (shard: ShardName) => void;
  conflict: (claim: Claim, holder: ShardState) => void;
}>;

/** What has come of it so far: comparisons of digests, when the last one was made, and objects that were not taken. */
export type InflowTally = Readonly<{ compared: number; comparedMs: number; differed: number; refused: number }>;

export class LinkInflow {
  readonly #parts: LinkInflowParts;
  readonly #context: () => InflowContext;
  readonly #acks: Acks;
  #state: InflowState = newInflow();
  #isOver = false;
  /** What was taken since the event loop turned last. */
  #taken: Credit = nothing;
  #tally: InflowTally = { compared: 0, comparedMs: 0, differed: 0, refused: 0 };
  /** Settles when everything before it has. */
  #settled: Promise<void> = Promise.resolve();

  /** `context` is asked anew for each step: policies and types change. */
  constructor(parts: LinkInflowParts, context: () => InflowContext) {
    this.#parts = parts;
    this.#context = context;
    this.#acks = new Acks((ack) => parts.connection.send(ack), parts.turn);
  }

  get tally(): InflowTally {
    return this.#tally;
  }

  /** Resolves once the store has room for it. */
  async take(frame: NumberedFrame | FrameOf<'claim'>): Promise<void> {
    for (const part of frame.kind === 'put' ? putParts(frame, this.#context().limits) : [frame]) {
      if (this.#isOver) return;
      await this.#take({ kind: 'frame', frame: part });
      await this.#pauseAfter(part);
    }
  }

  /** Types were declared. */
  declared(): void {
    if (this.#state.slices.size > 0) void this.#take({ kind: 'declared' });
  }

  /** A type is gone, and what was held of these slices with it. */
  dropped(slices: readonly Slice[]): void {
    void this.#take({ kind: 'dropped', slices });
  }

  /** Nothing more is taken; resolves when what was is decided. */
  async close(): Promise<void> {
    this.#isOver = true;
    // What was given out may give out more.
    for (let settled: Promise<void> | undefined; settled !== this.#settled;) {
      settled = this.#settled;
      await settled;
    }
  }

  /** Small frames that come together go into one commit; a cache that never paused would keep the others waiting. */
  async #pauseAfter(frame: NumberedFrame | FrameOf<'claim'>): Promise<void> {
    const more = creditOf(frame);
    const [mutations, bytes] = [this.#taken.mutations + more.mutations, this.#taken.bytes + more.bytes];
    const isFull = mutations >= turnMax.mutations || bytes >= turnMax.bytes;
    this.#taken = isFull ? nothing : { mutations, bytes };
    if (isFull) await this.#parts.turn();
  }

  async #take(event: InflowEvent): Promise<void> {
    if (this.#isOver) return;
    const { state, effects } = step(this.#state, event, this.#context());
    this.#state = state;
    for (const effect of effects) await this.#run(effect);
  }

  async #run(effect: InflowEffect): Promise<void> {
    const { connection, log, metrics, hold, answer, conflict } = this.#parts;
    switch (effect.kind) {
      case 'send':
        return effect.frame.kind === 'ack' ? this.#acks.add(effect.frame) : connection.send(effect.frame);
      case 'push':
        return this.#push(effect.work);
      case 'claim':
        return this.#claim(effect.claim);
      case 'clear':
        return this.#clear(effect.shard);
      case 'hold':
        return hold(effect.shard);
      case 'raise':
        return this.#raise(effect.claim);
      case 'answer':
        return answer(effect.shard);
      case 'conflict':
        return conflict(effect.claim, effect.holder);
      case 'again':
        await this.#settled;
        return this.#take({ kind: 'frame', frame: effect.frame });
      case 'refused': {
        const { slice, key, refusal } = effect;
        metrics.refusals.add(1, { reason: refusal.reason });
        this.#tally = { ...this.#tally, refused: this.#tally.refused + 1 };
        return log.warn('link.refused-here', {
          slice: formatSlice(slice),
          cluster: shown(key.cluster),
          namespace: shown(key.namespace),
          name: shown(key.name),
          reason: refusal.reason,
          message: refusal.message,
        });
      }
      case 'parked':
        return log.warn('link.slice-parked', { slice: formatSlice(effect.slice) });
      case 'uncovered':
        return log.warn('link.claim-not-heard', { shard: effect.shard });
      case 'differs':
        metrics.digestsDiffered.add(1);
        return log.warn('link.digest-differs', { slice: formatSlice(effect.slice) });
      case 'bye':
        this.#isOver = true;
        return connection.close(effect.reason, effect.message, effect.retryAfterMs);
      default:
        return unreachable(effect);
    }
  }

  async #push(work: LinkWork): Promise<void> {
    const outcomes = work.pushes.length > 0 ? await this.#give(work.pushes) : { decided: Promise.resolve([]) };
    this.#then(async () => {
      const decided = await outcomes.decided;
      for (const { kind } of decided) if (kind !== 'unavailable') this.#parts.metrics.pushes.add(1, { outcome: kind });
      if (work.pushes.some(({ kind }) => kind === 'compare')) this.#countComparison(work, decided);
      await this.#take({ kind: 'settled', work, outcomes: decided });
    });
  }

  #countComparison({ slice }: LinkWork, decided: readonly PushOutcome[]): void {
    const isDifferent = decided.some(({ kind }) => kind === 'differs');
    if (isDifferent && slice !== undefined && !this.#context().isInStep(slice)) return;
    if (!isDifferent && !decided.every(({ kind }) => kind === 'unchanged')) return;
    const { compared, differed, refused } = this.#tally;
    const comparedMs = this.#parts.clock.now();
    this.#tally = { compared: compared + 1, comparedMs, differed: differed + (isDifferent ? 1 : 0), refused };
  }

  async #claim(claim: Claim): Promise<void> {
    const { decided } = await this.#give([{ kind: 'claim', ...claim }]);
    this.#then(async () => {
      const [outcome] = await decided;
      if (outcome !== undefined) await this.#take({ kind: 'claimed', claim, outcome });
    });
  }

  async #raise(claim: Claim): Promise<void> {
    const { decided } = await this.#give([{ kind: 'claim', ...claim }]);
    this.#then(async () => {
      if ((await decided)[0]?.kind !== 'fenced') this.#parts.log.info('link.claim-raised', { shard: claim.shard, moves: claim.moves });
    });
  }

  async #clear(shard: ShardName): Promise<void> {
    const { decided } = await this.#give([{ kind: 'clear', shard, fence: false, nowMs: this.#parts.clock.wallMs(), onlyRemoved: true }]);
    this.#then(async () => {
      const [outcome] = await decided;
      // Every connection tells of every shard that was ever removed.
      if (outcome?.kind === 'swept' && outcome.removed > 0) this.#parts.log.info('link.shard-removed', { shard, objects: outcome.removed });
    });
  }

  /** Resolves once it is in the queue, with what resolves when it is decided. */
  async #give(pushes: readonly Push[]): Promise<Readonly<{ decided: Promise<readonly PushOutcome[]> }>> {
    const { lane } = this.#parts;
    await lane.room();
    return { decided: lane.push(pushes) };
  }

  #then(task: () => Promise<void>): void {
    const before = this.#settled;
    this.#settled = before.then(task);
    // Whoever closes awaits it; a fault on the way cuts the connection off.
    this.#settled.catch(() => this.#parts.connection.terminate());
  }
}
