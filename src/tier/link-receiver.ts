/**
 * Runs the receiving half of a link (link-receiver-step.ts decides): has the store decide in order what came, and acknowledges as it becomes
 * durable. Nothing is read while the store has no room.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { shown } from '../diagnostics/shown.js';
import { unreachable } from '../domain/errors.js';
import type { Clock, Objects, PushLane, Revisions } from '../domain/ports.js';
import type { Push, PushOutcome } from '../domain/push.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Credit, FrameOf } from '../frames/frame.js';
import { Acks } from '../intake/acks.js';
import { creditOf } from '../intake/frame-credit.js';
import { putParts, turnMax } from '../intake/frame-parts.js';
import { Heartbeat } from './heartbeat.js';
import type { LinkPaths } from './link-paths.js';
import type { PolicyRemovals } from './policy-removals.js';
import { newLinkReceiver, step } from './link-receiver-step.js';
import type {
  LinkReceiverContext,
  LinkReceiverEffect,
  LinkReceiverEvent,
  LinkReceiverState,
  LinkWork,
  NumberedFrame,
} from './link-receiver-state.js';
import { Summaries } from './summaries.js';

const nothing: Credit = { mutations: 0, bytes: 0 };
const unheardMax = 1_000;
/** Stands for those beyond them, for as long as the link is open: no shard has this name. */
const others = '*';

export type LinkReceiverParts = Readonly<{
  store: Objects & Revisions;
  connection: FrameConnection;
  lane: PushLane;
  clock: Clock;
  paths: LinkPaths;
  policyRemovals: Pick<PolicyRemovals, 'holdsEnd'>;
  turn: () => Promise<void>;
  log: BoundedLog;
  /** The other end has reported of its shards' freshness; `askedMs`: when it was asked for that, if it was. */
  reported: (report: FrameOf<'report'>, askedMs: number | undefined) => void;
  metrics: Pick<Metrics, 'refusals' | 'pushes' | 'digestsDiffered' | 'claimsUnheard'>;
}>;

/** `push` resolves once the store has room for it. */
export type OwnWork = Readonly<{ push: (pushes: readonly Push[]) => Promise<void>; askAgain: (slice: Slice) => void }>;

/** What has come of it so far: comparisons of digests, when the last one was made, objects that were not taken, and claims that were not heard. */
export type LinkReceiverTally = Readonly<{ compared: number; comparedMs: number; differed: number; refused: number; unheard: number }>;

export class LinkReceiver {
  readonly #parts: LinkReceiverParts;
  readonly #context: () => LinkReceiverContext;
  readonly #acks: Acks;
  readonly #heartbeat: Heartbeat;
  #state: LinkReceiverState = newLinkReceiver();
  readonly #summaries: Summaries;
  #isOver = false;
  /** Shards whose last claims were not heard. */
  readonly #unheard = new Set<string>();
  /** What was taken since the event loop turned last. */
  #taken: Credit = nothing;
  #tally: LinkReceiverTally = { compared: 0, comparedMs: 0, differed: 0, refused: 0, unheard: 0 };
  /** Settles when what was to be taken before is in the queue of the store. */
  #last: Promise<void> = Promise.resolve();
  /** Settles when everything before it has. */
  #settled: Promise<void> = Promise.resolve();

  /** `context` is asked anew for each step: policies and types change. */
  constructor(parts: LinkReceiverParts, context: () => LinkReceiverContext) {
    this.#parts = parts;
    this.#context = context;
    this.#heartbeat = new Heartbeat({ clock: parts.clock, send: (number) => parts.connection.send({ kind: 'heartbeat', number }) });
    this.#acks = new Acks((ack) => parts.connection.send(ack), parts.turn);
    this.#summaries = new Summaries(parts);
  }

  get tally(): LinkReceiverTally {
    return this.#tally;
  }

  /** From now on the other end is asked how fresh everything is; only once it was sent what is held here. */
  ask(): void {
    if (!this.#isOver) this.#heartbeat.ask();
  }

  /** Resolves once the store has room for it. */
  take(frame: NumberedFrame): Promise<void> {
    return this.#inTurn(() => this.#takeWhole(frame));
  }

  /** A claim of the other end was heard, or passed over: `why`. */
  noteClaim({ shard, removed }: Pick<FrameOf<'claim'>, 'shard' | 'removed'>, why: string | undefined): void {
    if (why === undefined || removed) this.#unheard.delete(shard);
    else this.#unheard.add(this.#unheard.size < unheardMax ? shard : others);
    if (why === undefined) return;
    const { log, metrics } = this.#parts;
    metrics.claimsUnheard.add(1);
    this.#tally = { ...this.#tally, unheard: this.#tally.unheard + 1 };
    log.warn('link.claim-not-heard', { shard, neighbour: this.#context().from, why });
  }

  /** What this end does to what it holds, once all that was taken is decided; nothing is taken meanwhile. */
  exclusively(task: (own: OwnWork) => Promise<void>): Promise<void> {
    const push = async (pushes: readonly Push[]): Promise<void> => {
      const { decided } = await this.#give(pushes);
      this.#then(async () => void (await decided));
    };
    const askAgain = (slice: Slice): void =>
      this.#parts.connection.send({ kind: 'resync', slice, reason: 'the policy of this cache has changed' });
    return this.#inTurn(async () => {
      await this.#settled;
      if (!this.#isOver) await task({ push, askAgain });
    });
  }

  async #takeWhole(frame: NumberedFrame): Promise<void> {
    const { paths } = this.#parts;
    if (frame.kind === 'put' && frame.objects.length <= this.#context().limits.frameMutationsMax) await paths.read(frame);
    if (frame.kind === 'begin') paths.begun(frame.slice);
    const isHeld = frame.kind === 'end' && this.#state.slices.of(frame.slice)?.phase === 'syncing' && (await this.#holds(frame));
    for (const part of frame.kind === 'put' ? putParts(frame, this.#context().limits) : [frame]) {
      if (this.#isOver) return;
      await this.#take({ kind: 'frame', frame: part, isHeld });
      await this.#pauseAfter(part);
    }
    this.#askAgain();
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
    this.#heartbeat.close();
    await this.#summaries.close();
    // What was given out may give out more.
    for (let settled: Promise<void> | undefined; settled !== this.#settled;) {
      settled = this.#settled;
      await settled;
    }
  }

  #holds(end: FrameOf<'end'>): Promise<boolean> {
    return this.#parts.policyRemovals.holdsEnd(end, () => this.#settled);
  }

  /** What was refused for its path is let in where an object has sent another one since. */
  #askAgain(): void {
    const isComing = (slice: Slice): boolean => this.#state.slices.of(slice)?.phase === 'syncing';
    for (const slice of this.#parts.paths.takeDue(isComing))
      this.#parts.connection.send({ kind: 'resync', slice, reason: 'the path of a logical cluster was not known here' });
  }

  /** Small frames that come together go into one commit; a cache that never paused would keep the others waiting. */
  async #pauseAfter(frame: NumberedFrame): Promise<void> {
    const more = creditOf(frame);
    const [mutations, bytes] = [this.#taken.mutations + more.mutations, this.#taken.bytes + more.bytes];
    const isFull = mutations >= turnMax.mutations || bytes >= turnMax.bytes;
    this.#taken = isFull ? nothing : { mutations, bytes };
    if (isFull) await this.#parts.turn();
  }

  async #take(event: LinkReceiverEvent): Promise<void> {
    if (this.#isOver) return;
    const { state, effects } = step(this.#state, event, this.#context());
    this.#state = state;
    for (const effect of effects) await this.#run(effect);
  }

  async #run(effect: LinkReceiverEffect): Promise<void> {
    const { connection, log, metrics } = this.#parts;
    switch (effect.kind) {
      case 'send':
        return effect.frame.kind === 'ack' ? this.#acks.add(effect.frame) : connection.send(effect.frame);
      case 'push':
        return this.#push(effect.work);
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
      case 'summarise':
        return this.#summaries.add(effect.slice, effect.sequence);
      case 'parked':
        return log.warn('link.slice-parked', { slice: formatSlice(effect.slice) });
      case 'reported':
        return this.#takeReport(effect.report);
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

  #takeReport(report: FrameOf<'report'>): void {
    const isComplete = report.isComplete && this.#unheard.size === 0;
    this.#parts.reported({ ...report, isComplete }, this.#heartbeat.answered(report.heartbeat));
  }

  async #push(work: LinkWork): Promise<void> {
    const outcomes = work.pushes.length > 0 ? await this.#give(work.pushes) : { decided: Promise.resolve([]) };
    this.#then(async () => {
      const decided = await outcomes.decided;
      for (const { kind } of decided) if (kind !== 'unavailable') this.#parts.metrics.pushes.add(1, { outcome: kind });
      if (work.pushes.some(({ kind }) => kind === 'compare')) this.#countComparison(decided);
      this.#parts.paths.settled(work.last);
      await this.#take({ kind: 'settled', work, outcomes: decided });
    });
  }

  #countComparison(decided: readonly PushOutcome[]): void {
    const isDifferent = decided.some((outcome) => outcome.kind === 'differs' && outcome.isCurrent);
    if (!isDifferent && !decided.every(({ kind }) => kind === 'unchanged')) return;
    const { compared, differed } = this.#tally;
    const comparedMs = this.#parts.clock.now();
    this.#tally = { ...this.#tally, compared: compared + 1, comparedMs, differed: differed + (isDifferent ? 1 : 0) };
  }

  /** Resolves once it is in the queue, with what resolves when it is decided. */
  async #give(pushes: readonly Push[]): Promise<Readonly<{ decided: Promise<readonly PushOutcome[]> }>> {
    const { lane } = this.#parts;
    await lane.room();
    return { decided: lane.push(pushes) };
  }

  #inTurn(task: () => Promise<void>): Promise<void> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => {});
    return done;
  }

  #then(task: () => Promise<void>): void {
    const before = this.#settled;
    this.#settled = before.then(task);
    // Whoever closes awaits it; a fault on the way cuts the connection off.
    this.#settled.catch(() => this.#parts.connection.terminate());
  }
}
