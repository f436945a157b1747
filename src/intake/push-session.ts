/**
 * Runs one pusher's session (session.ts decides): reads frames one at a time, has the store decide them in order, and
 * acknowledges as they become durable.
 *
 * Nothing is read while the store has no room or the peer does not take its acknowledgements, so a session holds one frame and
 * its credit at most.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { shown } from '../diagnostics/shown.js';
import type { Caller } from '../domain/caller.js';
import type { ShardState } from '../domain/claim.js';
import type { Clock, PushLane, Pushes, Revisions, StoreIdentity, Subscription } from '../domain/ports.js';
import type { Term, Push, PushOutcome } from '../domain/push.js';
import { isResourceVersion } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { unreachable } from '../domain/errors.js';
import { BadFrame } from '../frames/bad-frame.js';
import { unavailableRetryMs, type ByeReason } from '../frames/bye.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Frame, FrameOf } from '../frames/frame.js';
import { Acks } from './acks.js';
import { partsOf } from './frame-parts.js';
import type { Holder, PushSessions } from './push-sessions.js';
import type { HeldRemovals } from './held-removals.js';
import { removeUnnamed } from './unnamed-slices.js';
import { greeting, step } from './session.js';
import type { Standbys } from './standbys.js';
import type { SessionContext, SessionEffect, SessionEvent, SessionState, Work } from './session-state.js';

export type PushSessionParts = Readonly<{
  store: Pushes & StoreIdentity & Revisions;
  sessions: PushSessions;
  removals: HeldRemovals;
  clock: Clock;
  /** Shared by all sessions: what they do is bounded in all. */
  log: BoundedLog;
  metrics: Pick<Metrics, 'refusals' | 'framesReceived' | 'pushes'>;
  standbys: Standbys;
  /** All of a step's context but the caller. */
  context: Omit<SessionContext, 'mayWriteFor'>;
}>;

export class PushSession {
  readonly #connection: FrameConnection;
  readonly #acks: Acks;
  readonly #parts: PushSessionParts;
  readonly #mayWriteFor: SessionContext['mayWriteFor'];
  readonly #user: string;
  #agent: string | undefined;
  #state: SessionState = greeting;
  #saidBye = false;
  #held: Readonly<{ shard: ShardName; holder: Holder; lane: PushLane }> | undefined;
  /** What its shard has; undefined: it has not said so. */
  #named: ReadonlySet<string> | undefined;
  #following: Subscription | undefined;
  /** Settles when everything before it has. */
  #settled: Promise<void> = Promise.resolve();

  constructor(connection: FrameConnection, caller: Caller, mayWriteFor: SessionContext['mayWriteFor'], parts: PushSessionParts) {
    this.#connection = connection;
    this.#acks = new Acks((ack) => connection.send(ack), turn);
    this.#parts = parts;
    this.#mayWriteFor = mayWriteFor;
    this.#user = caller.user;
  }

  /** Resolves once the connection is closed and nothing of it is under way. `hello` was read from `frames`. */
  async run(hello: FrameOf<'hello'>, frames: AsyncIterator<Frame>): Promise<void> {
    this.#agent = shown(hello.agent);
    try {
      await this.#takeFrame(hello);
      while (this.#state.phase !== 'ended') {
        await this.#connection.drained();
        const { done, value } = await frames.next();
        if (done === true) break;
        this.#parts.metrics.framesReceived.add(1, { kind: value.kind });
        await this.#takeFrame(value);
      }
      // The peer said bye, or has gone already.
      if (!this.#saidBye) this.#connection.close('shutdown', 'the session is over');
    } catch (error) {
      if (!(error instanceof BadFrame)) {
        this.#connection.terminate();
        throw error;
      }
      this.bye('protocol', error.message);
    } finally {
      await this.#settled;
      await this.#connection.closed;
      this.#leave();
    }
  }

  bye(reason: ByeReason, message: string, retryAfterMs?: number): void {
    if (this.#saidBye) return;
    this.#saidBye = true;
    this.#state = { phase: 'ended' };
    this.#parts.log.info('push.ended', { ...this.#who(), reason, message });
    this.#connection.close(reason, message, retryAfterMs);
  }

  async #takeFrame(frame: Frame): Promise<void> {
    for (const part of partsOf(frame, this.#parts.context.limits)) {
      await this.#take({ kind: 'frame', frame: part });
      // A pusher that never pauses would keep the others waiting.
      await turn();
    }
  }

  async #take(event: SessionEvent): Promise<void> {
    const { state, effects } = step(this.#state, event, {
      ...this.#parts.context,
      mayWriteFor: this.#mayWriteFor,
    });
    this.#state = state;
    for (const effect of effects) await this.#run(effect);
  }

  async #run(effect: SessionEffect): Promise<void> {
    switch (effect.kind) {
      case 'send':
        return effect.frame.kind === 'ack' ? this.#acknowledge(effect.frame) : this.#connection.send(effect.frame);
      case 'acquire':
        return this.#acquire(effect);
      case 'push':
        return this.#push(effect.work);
      case 'again':
        await this.#settled;
        return this.#take({ kind: 'frame', frame: effect.frame });
      case 'refused':
        this.#parts.metrics.refusals.add(1, { reason: effect.refusal.reason });
        return this.#parts.log.warn('push.refused', { ...this.#who(), ...refusalFields(effect) });
      case 'freshness':
        return this.#held && this.#parts.sessions.note(this.#held.shard, effect.freshness, this.#parts.clock.now());
      case 'types':
        this.#named = effect.named;
        return this.#removeUnnamed();
      case 'bye':
        if (effect.reason === 'forbidden') this.#parts.metrics.refusals.add(1, { reason: 'Forbidden' });
        return this.bye(effect.reason, effect.message, effect.retryAfterMs);
      default:
        return unreachable(effect);
    }
  }

  async #removeUnnamed(): Promise<void> {
    if (this.#held === undefined) return;
    const { shard, lane, holder } = this.#held;
    const { store, removals, log } = this.#parts;
    // What it sent before is decided, and shows in what the slices hold.
    await this.#settled;
    const by = { kind: 'pusher', term: holder.term } as const;
    const isNamed = (slice: Slice): boolean => this.#named?.has(formatSlice(slice)) ?? true;
    const failed = await removeUnnamed({ shard, by, isNamed }, { store, lane, removals, log });
    if (failed !== undefined) this.bye('unavailable', failed.message, unavailableRetryMs);
  }

  #acknowledge(ack: FrameOf<'ack'>): void {
    const { store } = this.#parts;
    this.#acks.add({ ...ack, position: store.format(store.published) });
  }

  /** One that has had the shard before has it still, or is fenced; another waits for whoever has it. */
  async #acquire(effect: SessionEffect & { kind: 'acquire' }): Promise<void> {
    const { shard, term, takesOver } = effect;
    if (term > 0 || takesOver) return this.#take(await this.#enter(effect));
    const enter = (removed: ShardState | undefined): Promise<SessionEvent> | SessionEvent =>
      removed === undefined ? this.#enter(effect) : this.#decided({ kind: 'fenced', holder: removed });
    const decided = await this.#parts.standbys.inTurn(effect, enter, {
      waits: () => {
        this.#parts.log.info('push.standby', { ...this.#who(), shard });
        this.#connection.send({ kind: 'standby' });
      },
      gone: this.#connection.closed,
    });
    if (decided !== undefined) return this.#take(decided);
  }

  async #enter({ shard, process, term: named, position }: SessionEffect & { kind: 'acquire' }): Promise<SessionEvent> {
    const { sessions, removals, clock, log } = this.#parts;
    const lane = sessions.lane(shard);
    const [outcome] = await lane.push([{ kind: 'acquire', shard, process, term: named, nowMs: clock.wallMs() }]);
    if (outcome === undefined) throw new Error('the store decides every push');
    if (outcome.kind !== 'acquired' || this.#state.phase !== 'coming') return this.#decided(outcome);
    const { term } = outcome;
    const holder: Holder = {
      process,
      term,
      peer: this.#connection.peer,
      silentSinceMs: () => this.#connection.silentSinceMs(),
      bye: (...why) => this.bye(...why),
      dropped: (resource) => void this.#take({ kind: 'dropped', resource }),
    };
    this.#held = { shard, holder, lane };
    // Before anything else is published: what takes the shard away from now on finds it here.
    sessions.enter(shard, holder, clock.now());
    this.#following = removals.follow((slice) => {
      if (slice.shard === shard) this.#removeUnnamed().catch(() => this.#connection.terminate());
    });
    const synced = await this.#synced(shard, term, { position, lane });
    log.info('push.connected', { ...this.#who(), syncedTerm: synced.length });
    return this.#decided(outcome, synced);
  }

  #decided(outcome: PushOutcome, synced: readonly Slice[] = []): SessionEvent {
    const { cacheId, epoch } = this.#parts.store;
    return { kind: 'decided', outcome, synced, cacheId, epoch };
  }

  /** Slices that this term has synced here. None, and it is noted so, when some of what it was acknowledged is lost. */
  async #synced(
    shard: ShardName,
    term: Term,
    { position, lane }: Readonly<{ position: string; lane: PushLane }>,
  ): Promise<readonly Slice[]> {
    const { store, log } = this.#parts;
    const slices = await store.slices();
    const synced = slices.filter(({ slice, syncedTerm: by }) => slice.shard === shard && by === term).map(({ slice }) => slice);
    if (synced.length === 0 || (isResourceVersion(position) && store.locate(position).kind === 'ours')) return synced;
    await lane.push(synced.map((slice): Push => ({ kind: 'invalidate', slice, by: { kind: 'pusher', term } })));
    log.warn('push.position-unknown', { ...this.#who(), shard, position: shown(position), slices: synced.length });
    return [];
  }

  /** Resolves once the store has room for it; acknowledged when it and all before it are settled. */
  async #push(work: Work): Promise<void> {
    const lane = this.#held?.lane;
    if (lane === undefined) throw new Error('a session pushes once it holds its shard');
    if (work.pushes.length > 0) await lane.room();
    const decided = work.pushes.length > 0 ? lane.push(work.pushes) : Promise.resolve([]);
    const before = this.#settled;
    this.#settled = (async () => {
      await before;
      const outcomes = await decided;
      for (const { kind } of outcomes) if (kind !== 'unavailable') this.#parts.metrics.pushes.add(1, { outcome: kind });
      await this.#take({ kind: 'settled', work, outcomes });
    })();
  }

  #leave(): void {
    if (this.#held === undefined) return;
    const { shard, holder } = this.#held;
    this.#following?.cancel();
    this.#parts.sessions.leave(shard, holder, this.#parts.clock.now());
    this.#parts.log.info('push.disconnected', this.#who());
  }

  #who(): Readonly<Record<string, unknown>> {
    const { shard, holder } = this.#held ?? {};
    return { user: this.#user, peer: this.#connection.peer, agent: this.#agent, shard, term: holder?.term };
  }
}

/** Who, what and why; never a body. */
function refusalFields({ slice, key, refusal }: SessionEffect & { kind: 'refused' }): Readonly<Record<string, unknown>> {
  const [reason, message] = [refusal.reason, shown(refusal.message)];
  const place = { cluster: key && shown(key.cluster), namespace: key && shown(key.namespace), name: key && shown(key.name) };
  return { slice: formatSlice(slice), ...place, reason, message };
}
