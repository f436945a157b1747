/**
 * One pusher's session, from its hello to the end of its connection. Frames are read one at a time.
 *
 *   phase    frame                           what follows
 *   coming   hello                           the pusher acquires its shard, or waits for it
 *                                            acquired: welcome ▶ open
 *                                            fenced, unavailable: bye ▶ over
 *   open     put delete begin end cluster…   receiver-step.ts
 *            status                          the freshness is stored
 *            types                           once all slices are named, others are removed
 *            bye                             ▶ over
 *            any other                       bye ▶ over
 *
 * SESSION-1 A session writes only for its own shard, in the term that it was given. The store
 *   checks both again.
 * SESSION-2 If the store was rolled back and lost acknowledged changes, the pusher resyncs the
 *    shard. The position in its hello shows the loss.
 * Bounds: one frame in hand; the credit limits undecided frames. The session reads nothing while
 * the store's queue is full, or while the peer does not read its acks.
 */
import { shown, type BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Metrics } from '../../diagnostics/metrics.js';
import { mayWriteFor, type Caller } from '../../domain/caller.js';
import type { ShardState } from '../../domain/claim.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { PushLane, Store } from '../../domain/store-port.js';
import type { Push, PushOutcome, Term } from '../../domain/push.js';
import { isResourceVersion } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import { BadFrame } from '../../frames/bad-frame.js';
import { unavailableRetryMs, type ByeReason } from '../../frames/bye.js';
import { closingFields, type Closing, type FrameConnection } from '../../frames/frame-connection.js';
import { frameBounds } from '../../frames/frame-bounds.js';
import { protocolVersion, type Frame, type FrameOf } from '../../frames/frame.js';
import type { HeldRemovals } from '../shards/held-removals.js';
import type { Holder, PushSessions } from './push-sessions.js';
import { PusherSlices } from './pusher-slices.js';
import { Acks, Receiver, type OwnEffect } from './receiver.js';
import { refusedFields } from './receiver-effects.js';
import type { IntakeRules, ReceiverContext } from './receiver-state.js';
import { byeTo, parsePusherHello, type PusherHello } from './session.js';
import type { Standbys } from './standbys.js';

/** What the endpoint passes on to each of its sessions. */
export type PushContext = Readonly<{
  store: Pick<Store, 'cacheId' | 'epoch' | 'revisions' | 'state'>;
  sessions: PushSessions;
  removals: HeldRemovals;
  clock: Clock;
  metrics: Pick<Metrics, 'refusals' | 'framesReceived' | 'pushes'>;
  standbys: Standbys;
  rules: IntakeRules;
}>;

export type PushSessionParts = PushContext &
  Readonly<{
    turn: () => Promise<void>;
    /** Shared by all sessions, to bound their log lines together. */
    log: BoundedLog;
  }>;

type Held = Readonly<{ shard: ShardName; holder: Holder; lane: PushLane; named: PusherSlices; following: Subscription }>;

/** The policies of links do not apply to pushers. */
const noPolicy = { covers: () => true, accepts: () => true, holds: () => true, hasHeldRemoval: () => false };

/** The store's decision on a hello. `synced`: the slices that need no sync (`#resumedSlices`). */
type Decided = Readonly<{ outcome: PushOutcome; synced: readonly Slice[] }>;

export class PushSession {
  readonly #connection: FrameConnection;
  readonly #acks: Acks;
  readonly #parts: PushSessionParts;
  readonly #caller: Caller;
  #agent: string | undefined;
  #isOver = false;
  #hasSentBye = false;
  /** Set once the store has given the shard to this session. */
  #held: Held | undefined;
  /** Set before the pusher learns which slices are synced here. */
  #receiver: Receiver | undefined;
  #isWelcome = false;

  constructor(connection: FrameConnection, caller: Caller, parts: PushSessionParts) {
    this.#connection = connection;
    this.#acks = new Acks((ack) => connection.send(ack), parts.turn);
    this.#parts = parts;
    this.#caller = caller;
  }

  /**
   * Resolves once the connection is closed and no work of the session is under way. `hello` was
   * read from `frames`.
   */
  async run(hello: FrameOf<'hello'>, frames: AsyncIterator<Frame>): Promise<void> {
    this.#agent = shown(hello.agent);
    try {
      await this.#greet(hello);
      while (!this.#isOver) {
        await this.#connection.drained();
        const { done, value } = await frames.next();
        if (done === true || this.#isOver) break;
        this.#parts.metrics.framesReceived.add(1, { kind: value.kind });
        await this.#receive(value);
      }
      // The peer has said bye, or closed the connection.
      if (!this.#hasSentBye) this.#connection.close('shutdown', 'the session is over');
    } catch (error) {
      if (!(error instanceof BadFrame)) {
        this.#connection.terminate();
        throw error;
      }
      this.bye('protocol', error.message);
    } finally {
      await this.#receiver?.close();
      this.#leave(await this.#connection.closed);
    }
  }

  bye(reason: ByeReason, message: string, retryAfterMs?: number): void {
    if (this.#hasSentBye) return;
    this.#hasSentBye = true;
    this.#end();
    this.#parts.log.info('push.ended', { ...this.#who(), reason, message });
    this.#connection.close(reason, message, retryAfterMs);
  }

  #end(): void {
    this.#isOver = true;
    this.#receiver?.end();
  }

  async #greet(hello: FrameOf<'hello'>): Promise<void> {
    const coming = parsePusherHello(hello, (shard) => mayWriteFor(this.#caller, shard));
    if (coming.kind === 'bye') return this.#refuse(coming);
    const decided = await this.#acquire(coming);
    if (decided === undefined || this.#isOver) return;
    const { outcome, synced } = decided;
    if (outcome.kind !== 'acquired') return this.#refuse(byeTo(coming, outcome));
    const { term } = outcome;
    const [{ cacheId, epoch }, { credit, limits }] = [this.#parts.store, this.#parts.rules];
    this.#receiver = this.#openReceiver(coming, term, synced);
    for (let at = 0; at < synced.length; at += frameBounds.namesPerFrame) {
      this.#connection.send({ kind: 'synced', slices: synced.slice(at, at + frameBounds.namesPerFrame) });
      await this.#parts.turn();
      if (this.#isOver) return;
    }
    this.#connection.send({ kind: 'welcome', protocol: protocolVersion, cacheId, epoch, term, credit, limits });
    this.#isWelcome = true;
  }

  async #receive(frame: Frame): Promise<void> {
    const [held, receiver] = [this.#held, this.#receiver];
    if (held === undefined || receiver === undefined) return;
    const { shard, named } = held;
    const isOwn = (slice: Slice): boolean => slice.shard === shard;
    switch (frame.kind) {
      case 'put':
      case 'delete':
      case 'begin':
      case 'end':
      case 'clusterBegin':
      case 'clusterKeep':
      case 'clusterEnd':
        if (!isOwn(frame.slice))
          return this.#refuse({ reason: 'forbidden', message: `a session of the shard ${shard} must not send a slice of another shard` });
        if (frame.kind === 'begin') named.begun(frame.slice);
        return receiver.accept(frame);
      case 'status': {
        const own = { freshness: frame.freshness.filter(({ slice }) => isOwn(slice)), withdrawn: frame.withdrawn.filter(isOwn) };
        this.#parts.sessions.recordStatus(shard, own, this.#parts.clock.now());
        return this.#parts.turn();
      }
      case 'types':
        await this.#name({ ...frame, slices: frame.slices.filter(isOwn), withdrawn: frame.withdrawn.filter(isOwn) }, named, receiver);
        return this.#parts.turn();
      case 'bye':
        return this.#end();
      default:
        return this.bye('protocol', `a pusher must not send the frame ${frame.kind}`);
    }
  }

  #openReceiver(coming: PusherHello, term: Term, synced: readonly Slice[]): Receiver {
    const context: ReceiverContext = { ...this.#parts.rules, ...noPolicy, by: { kind: 'pusher', term } };
    const { sessions, turn, metrics } = this.#parts;
    const lane = sessions.lane(coming.shard);
    const run = (effect: OwnEffect): void => this.#run(effect, coming);
    const terminate = (): void => this.#connection.terminate();
    return new Receiver({ lane, turn, metrics, context: () => context, run, terminate }, synced);
  }

  #run(effect: OwnEffect, coming: PusherHello): void {
    switch (effect.kind) {
      case 'send':
        return effect.frame.kind === 'ack' ? this.#acknowledge(effect.frame) : this.#connection.send(effect.frame);
      case 'refused':
        this.#parts.metrics.refusals.add(1, { reason: effect.refusal.reason });
        return this.#parts.log.warn('push.refused', { ...this.#who(), ...refusedFields(effect) });
      case 'fenced':
        return this.#refuse(byeTo(coming, effect));
      case 'bye':
        return this.#refuse(effect);
      default:
        throw new Error(`a pusher causes no ${effect.kind}`);
    }
  }

  #refuse({ reason, message, retryAfterMs }: Readonly<{ reason: ByeReason; message: string; retryAfterMs?: number | undefined }>): void {
    if (reason === 'forbidden') this.#parts.metrics.refusals.add(1, { reason: 'Forbidden' });
    this.bye(reason, message, retryAfterMs);
  }

  async #name(frame: Omit<FrameOf<'types'>, 'kind'>, named: PusherSlices, receiver: Receiver): Promise<void> {
    const { gone, isTurned } = named.update(frame);
    if (named.all !== undefined && (isTurned || gone.length > 0)) {
      // A slice that is withdrawn and named again must be resynced.
      await receiver.dispatch({ kind: 'named', slices: named.all });
      await this.#removeUnnamed();
    }
    this.#parts.sessions.notifyNames(isTurned ? undefined : [...gone, ...frame.slices]);
  }

  async #removeUnnamed(): Promise<void> {
    // The slices' counts of objects must include all earlier frames of the pusher.
    await this.#receiver?.decided;
    const failed = await this.#held?.named.removeOthers();
    if (failed !== undefined) this.bye('unavailable', failed.message, unavailableRetryMs);
  }

  #acknowledge(ack: FrameOf<'ack'>): void {
    const { revisions } = this.#parts.store;
    this.#acks.add({ ...ack, position: revisions.formatPosition(revisions.published) });
  }

  /**
   * The store decides at once on a pusher that has had the shard, or asks to take it over. Any
   * other pusher waits for the present one. Returns undefined if the waiting pusher's connection
   * closes first.
   */
  async #acquire(coming: PusherHello): Promise<Decided | undefined> {
    const { shard, term, takesOver } = coming;
    if (term > 0 || takesOver) return this.#enter(coming);
    const refusal = this.#parts.standbys.refuses(shard);
    if (refusal !== undefined) return { outcome: { kind: 'unavailable', refusal }, synced: [] };
    const enter = async (removed: ShardState | undefined): Promise<Decided> =>
      removed === undefined ? this.#enter(coming) : { outcome: { kind: 'fenced', holder: removed }, synced: [] };
    return this.#parts.standbys.inTurn(coming, enter, {
      waits: () => {
        this.#parts.log.info('push.standby', { ...this.#who(), shard });
        this.#connection.send({ kind: 'standby' });
      },
      gone: this.#connection.closed,
    });
  }

  async #enter(coming: PusherHello): Promise<Decided> {
    const { shard, process, term: before, position } = coming;
    const { store, sessions, removals, clock, log } = this.#parts;
    const lane = sessions.lane(shard);
    const [outcome] = await lane.push([{ kind: 'acquire', shard, process, term: before, nowMs: clock.wallMs() }]);
    if (outcome === undefined) throw new Error('the store decides every push');
    if (outcome.kind !== 'acquired' || this.#isOver) return { outcome, synced: [] };
    const { term } = outcome;
    const by = { kind: 'pusher', term } as const;
    const named = new PusherSlices({ shard, by, state: store.state, lane, removals, log, isOver: () => this.#isOver });
    const holder: Holder = {
      process,
      term,
      peer: this.#connection.peer,
      silentSinceMs: () => this.#connection.silentSinceMs(),
      bye: (...why) => this.bye(...why),
      named: () => named.all,
      dropped: (resource) => void this.#receiver?.dispatch({ kind: 'dropped', slices: [{ shard, resource }] }),
      declared: () => void this.#receiver?.dispatch({ kind: 'declared' }),
      overwritten: (slice) => this.#requestResync(slice),
    };
    const following = removals.follow((slice) => {
      if (slice.shard === shard) this.#removeUnnamed().catch(() => this.#connection.terminate());
    });
    this.#held = { shard, holder, lane, named, following };
    // Register the session before the next publication, so that a commit that gives the shard to
    // another pusher finds the session and ends it.
    sessions.enter(shard, holder, clock.now());
    const synced = await this.#resumedSlices(shard, term, position);
    log.info('push.connected', { ...this.#who(), syncedTerm: synced.length });
    return { outcome, synced };
  }

  /**
   * The slices that a pusher need not sync when it gets its shard again: those that its term has
   * synced here. `position`: the position of its last ack; '' if it had none. If the store does not
   * know the position, it has lost acknowledged changes, and no slice counts as synced.
   */
  async #resumedSlices(shard: ShardName, term: Term, position: string): Promise<readonly Slice[]> {
    const { store, sessions, log } = this.#parts;
    const synced = [...store.state.slicesOf(shard)].filter(({ syncedTerm }) => syncedTerm === term).map(({ slice }) => slice);
    if (synced.length === 0 || (isResourceVersion(position) && store.revisions.locatePosition(position).kind === 'ours')) return synced;
    await sessions.lane(shard).push(synced.map((slice): Push => ({ kind: 'invalidate', slice, by: { kind: 'pusher', term } })));
    log.warn('push.position-unknown', { ...this.#who(), shard, position: shown(position), slices: synced.length });
    return [];
  }

  #requestResync(slice: Slice): void {
    if (!this.#isWelcome) return this.bye('unavailable', 'a client wrote to the shard while the pusher connected', unavailableRetryMs);
    this.#connection.send({ kind: 'resync', slice, reason: 'a client wrote to the slice here' });
  }

  #leave(closing: Closing): void {
    if (this.#held === undefined) return;
    const { shard, holder, following } = this.#held;
    following.cancel();
    this.#parts.sessions.leave(shard, holder, this.#parts.clock.now());
    this.#parts.log.info('push.disconnected', { ...this.#who(), ...closingFields(closing) });
  }

  #who(): Readonly<Record<string, unknown>> {
    const { shard, holder } = this.#held ?? {};
    return { user: this.#caller.user, peer: this.#connection.peer, agent: this.#agent, shard, term: holder?.term };
  }
}
