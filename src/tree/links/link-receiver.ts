/**
 * The receiving half of a link: a Receiver (receiver.ts) and the parts that only links need. It
 * checks objects by policies and paths, sends summaries and heartbeats, and runs this end's own
 * work on its objects.
 */
import type { BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Metrics } from '../../diagnostics/metrics.js';
import { unreachable } from '../../domain/errors.js';
import type { Clock } from '../../domain/ports.js';
import type { PushLane, Store } from '../../domain/store-port.js';
import type { Push } from '../../domain/push.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Neighbour } from '../../domain/via.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { FrameOf } from '../../frames/frame.js';
import { Acks, Receiver, type OwnEffect } from '../../intake/push/receiver.js';
import { refusedFields } from '../../intake/push/receiver-effects.js';
import type { IntakeRules, NumberedFrame, ReceiverContext } from '../../intake/push/receiver-state.js';
import { Heartbeat } from './heartbeat.js';
import type { HeldRemovals } from '../../intake/shards/held-removals.js';
import type { LinkFilters } from '../filters/link-filters.js';
import { LinkPaths } from './link-paths.js';
import type { PolicyRemovals } from './policy-removals.js';
import { Summaries } from '../syncs/summaries.js';

const ignoredClaimsMax = 1_000;
/**
 * Represents all shards beyond `ignoredClaimsMax` while the link is open. No shard has this name.
 */
const overflowName = '*';

export type LinkReceiverParts = Readonly<{
  neighbour: Neighbour;
  /**
   * The filters at the moment of the call. Undefined before the policies of both ends are known:
   * until then this end accepts no object.
   */
  filters: () => LinkFilters | undefined;
  removals: Pick<HeldRemovals, 'waiting' | 'made'>;
  rules: IntakeRules;
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  connection: FrameConnection;
  lane: PushLane;
  clock: Clock;
  policyRemovals: Pick<PolicyRemovals, 'begun' | 'endMustWait'>;
  turn: () => Promise<void>;
  log: BoundedLog;
  /**
   * The other end has reported on freshness. `askedMs`: when this end sent the heartbeat that the
   * report answers; undefined if it answers none.
   */
  reported: (report: FrameOf<'report'>, askedMs: number | undefined) => void;
  metrics: Pick<Metrics, 'refusals' | 'pushes' | 'digestsDiffered' | 'claimsIgnored'>;
}>;

/**
 * `push` resolves once the store's queue has room for the pushes. `askAgain` asks the other end for
 * a resync.
 */
export type OwnWork = Readonly<{ push: (pushes: readonly Push[]) => Promise<void>; askAgain: (slice: Slice) => void }>;

/**
 * Counts since the link opened: digests compared and found different, objects refused, and claims
 * ignored. `comparedMs`: when the last digest was compared.
 */
export type LinkReceiverTally = Readonly<{
  compared: number;
  comparedMs: number;
  differed: number;
  refused: number;
  claimsIgnored: number;
}>;

export class LinkReceiver {
  readonly #parts: LinkReceiverParts;
  readonly #paths: LinkPaths;
  readonly #receiver: Receiver;
  readonly #acks: Acks;
  readonly #heartbeat: Heartbeat;
  readonly #summaries: Summaries;
  readonly #ignoredClaims = new Set<string>();
  #tally: LinkReceiverTally = { compared: 0, comparedMs: 0, differed: 0, refused: 0, claimsIgnored: 0 };
  /** Settles when every earlier frame and task is in the queue of the store. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: LinkReceiverParts) {
    this.#parts = parts;
    const { connection, clock, turn, neighbour, filters, store, removals, rules } = parts;
    this.#paths = new LinkPaths({ store: parts.store, from: neighbour, filters });
    const context: ReceiverContext = {
      ...rules,
      by: { kind: 'link', neighbour },
      covers: (slice) => filters()?.ownFrom(neighbour).covers(slice) ?? false,
      accepts: (object) => this.#paths.accepts(object),
      holds: (slice) => store.state.slice(slice) !== undefined,
      hasHeldRemoval: (slice) => removals.waiting(slice) !== undefined,
    };
    this.#receiver = new Receiver({
      ...parts,
      context: () => context,
      run: (effect) => this.#run(effect),
      terminate: () => connection.terminate(),
    });
    this.#heartbeat = new Heartbeat({ clock, send: (number) => connection.send({ kind: 'heartbeat', number }) });
    this.#acks = new Acks((ack) => connection.send(ack), turn);
    this.#summaries = new Summaries(parts);
  }

  get tally(): LinkReceiverTally {
    return this.#tally;
  }

  /** Starts the heartbeats. The other end must already have the inventory of this end. */
  requestReports(): void {
    if (!this.#receiver.isOver) this.#heartbeat.send();
  }

  /** Resolves once the frame is in the store's queue. */
  accept(frame: NumberedFrame): Promise<void> {
    return this.#inTurn(() => this.#acceptWhole(frame));
  }

  /** Records whether this end accepted a claim. `why`: the reason if it ignored the claim. */
  recordClaim({ shard, removed }: Pick<FrameOf<'claim'>, 'shard' | 'removed'>, why: string | undefined): void {
    if (why === undefined || removed) this.#ignoredClaims.delete(shard);
    else this.#ignoredClaims.add(this.#ignoredClaims.size < ignoredClaimsMax ? shard : overflowName);
    if (why === undefined) return;
    const { log, metrics, neighbour } = this.#parts;
    metrics.claimsIgnored.add(1);
    this.#tally = { ...this.#tally, claimsIgnored: this.#tally.claimsIgnored + 1 };
    log.warn('link.claim-ignored', { shard, neighbour, why });
  }

  /**
   * Runs this end's own work on its objects, once all received frames are decided. No frame is
   * accepted meanwhile.
   */
  exclusively(task: (own: OwnWork) => Promise<void>): Promise<void> {
    const push = (pushes: readonly Push[]): Promise<void> => this.#receiver.push(pushes);
    const askAgain = (slice: Slice): void => this.#resync(slice, 'the policy of this cache has changed');
    return this.#inTurn(async () => {
      await this.#receiver.decided;
      if (!this.#receiver.isOver) await task({ push, askAgain });
    });
  }

  declared(): void {
    void this.#receiver.dispatch({ kind: 'declared' });
  }

  /** A type was dropped, with the objects of these slices. */
  dropped(slices: readonly Slice[]): void {
    void this.#receiver.dispatch({ kind: 'dropped', slices });
  }

  /** Accepts no more frames. Resolves when all accepted frames are decided. */
  async close(): Promise<void> {
    this.#receiver.end();
    this.#heartbeat.close();
    await this.#summaries.close();
    await this.#receiver.close();
  }

  async #acceptWhole(frame: NumberedFrame): Promise<void> {
    const { policyRemovals, rules } = this.#parts;
    const isComing = (slice: Slice): boolean => this.#receiver.phaseOf(slice) === 'syncing';
    if (frame.kind === 'put' && frame.objects.length <= rules.limits.frameMutationsMax) await this.#paths.read(frame);
    if (frame.kind === 'begin') {
      this.#paths.begun(frame.slice);
      policyRemovals.begun(frame.slice, this.#receiver);
    }
    const removes = frame.kind === 'end' && isComing(frame.slice);
    const isRemovalHeld = removes && (await this.#endMustWait(frame));
    await this.#receiver.accept(frame, isRemovalHeld);
    if (removes && !isRemovalHeld) this.#recordRemoved(frame.slice);
    // In these slices, objects were refused because their path was not known. Another object has
    // brought the path, so the receiver can accept them now.
    for (const slice of this.#paths.takeDue(isComing)) this.#resync(slice, 'the canonical path of a logical cluster was not known here');
  }

  #endMustWait(frame: FrameOf<'end'>): Promise<boolean> {
    const askAgain = (): void => this.#resync(frame.slice, 'the slice was synced under another policy');
    return this.#parts.policyRemovals.endMustWait(frame, () => this.#receiver.decided, askAgain);
  }

  #run(effect: OwnEffect): void {
    const { connection, log, metrics } = this.#parts;
    switch (effect.kind) {
      case 'send':
        if (effect.frame.kind !== 'ack') return connection.send(effect.frame);
        this.#paths.decidedUpTo(effect.frame.sequence);
        return this.#acks.add(effect.frame);
      case 'refused':
        metrics.refusals.add(1, { reason: effect.refusal.reason });
        this.#tally = { ...this.#tally, refused: this.#tally.refused + 1 };
        return log.warn('link.refused-here', refusedFields(effect));
      case 'summarise':
        return this.#summaries.add(effect.slice, effect.sequence);
      case 'parked':
        return log.warn('link.slice-parked', { slice: formatSlice(effect.slice) });
      case 'reported':
        return this.#receiveReport(effect.report);
      case 'compared':
        return this.#recordComparison(effect);
      case 'bye':
        this.#receiver.end();
        return connection.close(effect.reason, effect.message, effect.retryAfterMs);
      case 'fenced':
        throw new Error('no link is fenced');
      default:
        return unreachable(effect);
    }
  }

  /**
   * Once the store has decided an end, reports to HeldRemovals that the end's removal was made.
   * Slices of which this end's policy accepts nothing are removed by uncovered-slices.ts.
   */
  #recordRemoved(slice: Slice): void {
    const { filters, neighbour, removals } = this.#parts;
    if (filters()?.ownFrom(neighbour).covers(slice) !== true) return;
    void this.#receiver.decided.then(() => (this.#receiver.isOver ? undefined : removals.made(slice)));
  }

  #receiveReport(report: FrameOf<'report'>): void {
    const isComplete = report.isComplete && this.#ignoredClaims.size === 0;
    this.#parts.reported({ ...report, isComplete }, this.#heartbeat.answered(report.heartbeat));
  }

  #recordComparison({ slice, isSame }: OwnEffect & { kind: 'compared' }): void {
    const { clock, log, metrics } = this.#parts;
    const { compared, differed } = this.#tally;
    this.#tally = { ...this.#tally, compared: compared + 1, comparedMs: clock.now(), differed: differed + (isSame ? 0 : 1) };
    if (isSame) return;
    metrics.digestsDiffered.add(1);
    log.warn('link.digest-differs', { slice: formatSlice(slice) });
  }

  #resync(slice: Slice, reason: string): void {
    this.#parts.connection.send({ kind: 'resync', slice, reason });
  }

  #inTurn(task: () => Promise<void>): Promise<void> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => {});
    return done;
  }
}
