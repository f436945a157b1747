/**
 * A sender in one connection: hello, welcome, then all slices in turn until the connection ends.
 *
 *  hello ─▶ (standby ─▶) welcome ─▶ resume each slice ─▶ open, read, send in turns ─▶ bye
 *                                                        ◀── ack, refuse, resync
 *
 * Before `run` returns, it gives the unacknowledged mutations back to their slices.
 */
import type { Log } from '../diagnostics/log.js';
import type { Term } from '../domain/push.js';
import type { Clock } from '../domain/ports.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { BadFrame } from '../frames/bad-frame.js';
import { reasonOfCode, type ByeReason } from '../frames/bye.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import { protocolVersion, type Frame, type FrameOf } from '../frames/frame.js';
import { AckWatch } from './ack-watch.js';
import type { Notifier } from './notifier.js';
import { pause } from '../domain/base/promises.js';
import { frameBounds } from '../frames/frame-bounds.js';
import { OutgoingStatus } from './outgoing-status.js';
import type { Parting } from './reconnect.js';
import { resume } from './resume.js';
import type { SenderOptions } from './sender-options.js';
import type { SliceFeed } from './slice-feed.js';
import { SliceTurns } from './slice-turns.js';
import { Window, type Sent } from './window.js';

export type SenderSessionParts = Readonly<{
  connection: FrameConnection;
  /** By the text of their slice, in the order of their turns; a live view. */
  feeds: ReadonlyMap<string, SliceFeed>;
  clock: Clock;
  /** Resolves in a later turn of the event loop. */
  turn: () => Promise<void>;
  log: Log;
  notifier: Notifier;
  /** Whether `feeds` are all slices that the shard has. */
  isComplete: () => boolean;
  /** The position of the last ack of all connections, '' before the first. */
  position: string;
  /** The sender's last term; 0 before the first. */
  term: Term;
  /** Called once, when the cache has given the shard to the sender. */
  welcomed: (sinceMs: number, cache: Pick<FrameOf<'welcome'>, 'cacheId' | 'epoch' | 'term'>) => void;
  /** Called when another pusher has the shard, so that this sender must wait. */
  onStandby: () => void;
  /**
   * Called at every ack, with the cache's position and the number of objects and deletions that the
   * cache has accepted.
   */
  acknowledged: (position: string, accepted: number) => void;
}>;

/**
 * How soon the cache learns that a slice has lost or regained its source; later if checking all
 * slices takes more than `statusStepsPerCheck` steps.
 */
const statusCheckMs = 250;
const statusStepsPerCheck = 10;

type Welcomed = Readonly<{ cacheId: string; window: Window<SliceFeed>; turns: SliceTurns; types: OutgoingTypes; sinceMs: number }>;

export class SenderSession {
  readonly #parts: SenderSessionParts;
  readonly #options: SenderOptions;
  readonly #stop = new AbortController();
  readonly #timers = new Set<() => void>();
  #welcomed: Welcomed | undefined;
  #standbyMs: number | undefined;
  #isDraining = false;
  /** Slices of the sender that the cache has named as synced, by text. */
  readonly #synced = new Set<string>();
  #work: Promise<unknown> = Promise.resolve();
  /** An error of `#work`, which `run` rethrows: a bug. */
  #fault: Readonly<{ error: unknown }> | undefined;
  /** How the session ended, set once either end has sent a bye. */
  #ending: Readonly<{ reason: ByeReason | undefined; message: string; retryAfterMs?: number | undefined }> | undefined;

  constructor(parts: SenderSessionParts, options: SenderOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get welcomed(): Welcomed | undefined {
    return this.#welcomed;
  }

  /**
   * Runs until the connection is closed. If aborted, waits at most `shutdownGraceMs` until all sent
   * mutations are acknowledged, then sends a bye.
   */
  async run(signal: AbortSignal): Promise<Parting> {
    const { connection } = this.#parts;
    const drain = (): void => this.#drain();
    signal.addEventListener('abort', drain);
    this.#after(this.#options.welcomeTimeoutMs, () => {
      if (this.#welcomed === undefined && this.#standbyMs === undefined) this.#leave('timeout', 'the cache sent no welcome in time');
    });
    try {
      connection.send(this.#hello());
      if (signal.aborted) this.#drain();
      await this.#listen();
      const { code } = await connection.closed;
      if (this.#fault !== undefined) throw this.#fault.error;
      return this.#parting(code);
    } finally {
      signal.removeEventListener('abort', drain);
      connection.terminate();
      this.#stop.abort();
      for (const cancel of this.#timers) cancel();
      await this.#work;
      for (const [feed, items] of this.#welcomed?.window.takeBack() ?? []) feed.giveBack(items);
    }
  }

  changed(feed: SliceFeed): void {
    this.#welcomed?.turns.add(feed);
  }

  /** Names a new slice to the cache before its first mutation is sent. */
  named(slice: Slice): void {
    this.#welcomed?.types.changed(slice);
  }

  /**
   * Wakes the slices that waited for the withdrawn slice, and withdraws that slice at the cache.
   */
  withdrawn({ name, slice }: SliceFeed): void {
    this.#welcomed?.turns.wake(name);
    this.#welcomed?.types.changed(slice);
  }

  #hello(): Frame {
    const { shard, process, takesOver, agent } = this.#options;
    const { term, position } = this.#parts;
    const granted = { credit: undefined, limits: undefined, ...(position === '' ? {} : { position }) };
    const who = { role: 'shard', name: shard, process, term, takesOver, route: [] } as const;
    return { kind: 'hello', protocol: protocolVersion, ...who, agent, ...granted };
  }

  async #listen(): Promise<void> {
    const { connection } = this.#parts;
    try {
      for await (const frame of connection.frames()) {
        this.#receive(frame);
        if (frame.kind === 'bye') return connection.terminate();
      }
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.#leave('protocol', error.message);
    }
  }

  #receive(frame: Frame): void {
    switch (frame.kind) {
      case 'welcome':
        return this.#welcomed === undefined ? this.#welcome(frame) : this.#leave('protocol', 'the cache sent welcome twice');
      case 'synced':
        return this.#recordSynced(frame);
      case 'standby':
        return this.#standBy();
      case 'ack':
        return this.#acknowledge(frame);
      case 'refuse':
        return this.#refuse(frame);
      case 'resync':
        return this.#resync(frame);
      case 'bye':
        this.#ending ??= frame;
        return;
      case 'status':
        return;
      default:
        return this.#leave('protocol', `${frame.kind} is no frame for a shard`);
    }
  }

  #standBy(): void {
    if (this.#welcomed !== undefined) return this.#leave('protocol', 'the cache sent standby after welcome');
    this.#standbyMs ??= this.#parts.clock.now();
    this.#parts.log.info('sender.standby');
    this.#parts.onStandby();
  }

  #recordSynced({ slices }: FrameOf<'synced'>): void {
    if (this.#welcomed !== undefined) return this.#leave('protocol', 'the cache sent synced after welcome');
    for (const name of slices.map(formatSlice)) if (this.#parts.feeds.has(name)) this.#synced.add(name);
  }

  #welcome({ protocol, cacheId, epoch, term, credit, limits }: FrameOf<'welcome'>): void {
    if (protocol !== protocolVersion) return this.#leave('unsupported', `protocol ${protocol} is not spoken here, ${protocolVersion} is`);
    const { connection, feeds, clock, log, welcomed, isComplete } = this.#parts;
    const sinceMs = clock.now();
    const window = new Window<SliceFeed>(credit);
    const turns = new SliceTurns({ feeds, connection, cacheId, limits, window }, this.#options);
    this.#welcomed = { cacheId, window, turns, types: new OutgoingTypes(feeds, isComplete), sinceMs };
    const anew = [...feeds].filter(([name, feed]) => resume(feed.knowledge(), { cacheId, syncedThere: this.#synced.has(name) }) === 'sync');
    for (const [, feed] of anew) void feed.close();
    log.info('sender.connected', { cacheId, epoch, term, slices: feeds.size, syncing: anew.length });
    welcomed(sinceMs, { cacheId, epoch, term });
    for (const feed of feeds.values()) turns.add(feed);
    this.#work = Promise.all([this.#supervise(this.#pump(this.#welcomed)), this.#supervise(this.#sendStatus(this.#welcomed))]);
  }

  #acknowledge({ sequence, credit, position }: FrameOf<'ack'>): void {
    const done = this.#welcomed?.window.acknowledge(sequence, credit);
    if (this.#welcomed === undefined || done === undefined) return this.#leave('protocol', `${sequence} was acknowledged and never sent`);
    for (const { owner, item } of done) {
      owner.acknowledge(item, this.#welcomed.cacheId);
      if (item.outgoing.kind === 'end') this.#welcomed.turns.wake(owner.name);
    }
    this.#parts.acknowledged(position ?? '', done.filter(isAccepted).length);
    this.#parts.notifier.notify();
    if (this.#isDraining && this.#welcomed.window.unacknowledged.mutations === 0) this.#leave('shutdown', 'the sender is stopping');
  }

  #refuse({ sequence, reason, message }: FrameOf<'refuse'>): void {
    const sent = this.#welcomed?.window.find(sequence);
    if (sent === undefined) return this.#leave('protocol', `${sequence} was refused and is not under way`);
    sent.isRefused = true;
    sent.owner.refuse(sent.item, { reason, message });
    this.#parts.notifier.notify();
  }

  #resync({ slice, reason }: FrameOf<'resync'>): void {
    this.#parts.feeds.get(formatSlice(slice))?.resync(reason);
    this.#parts.notifier.notify();
  }

  async #pump({ turns, types }: Welcomed): Promise<void> {
    const { connection, notifier } = this.#parts;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const seen = notifier.notified;
      const named = types.next();
      if (named !== undefined) connection.send(named);
      else if (turns.serveNext()) notifier.notify();
      else {
        await notifier.after(seen, signal);
        continue;
      }
      await this.#parts.turn();
      await connection.drained();
    }
  }

  async #sendStatus({ window }: Welcomed): Promise<void> {
    const { connection, feeds, clock, turn } = this.#parts;
    const { signal } = this.#stop;
    const status = new OutgoingStatus(clock.now(), this.#options);
    const acks = new AckWatch(clock, this.#options);
    while (!signal.aborted) {
      let steps = 0;
      for (const frame of status.changedFrames(feeds, window, clock.now())) {
        if (frame !== undefined) connection.send(frame);
        steps += 1;
        await (steps % statusStepsPerCheck === 0 ? pause(clock, statusCheckMs, signal) : turn());
        if (signal.aborted) return;
      }
      if (acks.isOverdue(window)) this.#leave('timeout', 'nothing was acknowledged for too long');
      await pause(clock, statusCheckMs, signal);
    }
  }

  #drain(): void {
    this.#isDraining = true;
    this.#stop.abort();
    const isDone = this.#welcomed === undefined || this.#welcomed.window.unacknowledged.mutations === 0;
    if (isDone) return this.#leave('shutdown', 'the sender is stopping');
    this.#after(this.#options.shutdownGraceMs, () => this.#leave('shutdown', 'the sender is stopping'));
  }

  #leave(reason: ByeReason, message: string): void {
    this.#ending ??= { reason: reason === 'unsupported' ? reason : undefined, message };
    this.#parts.connection.close(reason, message);
  }

  /** Describes the end by the bye, or by the close code if the bye was lost. */
  #parting(code: number): Parting {
    const { clock } = this.#parts;
    const nowMs = clock.now();
    // The time as a standby counts, too. Otherwise the end of a long wait would count as one more
    // failed connection (reconnect.ts).
    const lastedMs = nowMs - (this.#standbyMs ?? this.#welcomed?.sinceMs ?? nowMs);
    const { reason, message, retryAfterMs } = this.#ending ?? { reason: reasonOfCode(code), message: `the connection closed with ${code}` };
    return { lastedMs, reason, message, retryAfterMs };
  }

  #after(delayMs: number, task: () => void): void {
    this.#timers.add(this.#parts.clock.after(delayMs, task));
  }

  /**
   * Makes an error in the work visible: terminates the connection, and lets `run` throw the error.
   */
  async #supervise(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#fault ??= { error };
      this.#parts.connection.terminate();
    }
  }
}

/** Counts only objects and deletions: a put without a body only says that the object exists. */
function isAccepted({ item: { outgoing }, isRefused }: Sent<SliceFeed>): boolean {
  return !isRefused && (outgoing.kind === 'delete' || (outgoing.kind === 'put' && outgoing.object.body !== undefined));
}

/**
 * Names a sender's slices in one connection: first all, in several frames, then those that are
 * added or withdrawn. `isAll` in a frame: all slices are named, and the shard has no others.
 */
class OutgoingTypes {
  readonly #slices: ReadonlyMap<string, Readonly<{ slice: Slice }>>;
  readonly #isComplete: () => boolean;
  /** Slices added or withdrawn since they were named, by text. */
  readonly #changed: Map<string, Slice>;
  #wasAll = false;

  /** `slices`: the sender's present slices by text, a live view. */
  constructor(slices: ReadonlyMap<string, Readonly<{ slice: Slice }>>, isComplete: () => boolean) {
    this.#slices = slices;
    this.#isComplete = isComplete;
    this.#changed = new Map([...slices].map(([name, { slice }]) => [name, slice]));
  }

  changed(slice: Slice): void {
    this.#changed.set(formatSlice(slice), slice);
  }

  /** The next frame; undefined if there is nothing new to send. */
  next(): FrameOf<'types'> | undefined {
    const slices: Slice[] = [];
    const withdrawn: Slice[] = [];
    for (const [name, slice] of this.#changed) {
      if (slices.length + withdrawn.length === frameBounds.namesPerFrame) break;
      this.#changed.delete(name);
      (this.#slices.has(name) ? slices : withdrawn).push(slice);
    }
    const isAll = this.#isComplete() && this.#changed.size === 0;
    if (slices.length + withdrawn.length === 0 && isAll === this.#wasAll) return undefined;
    this.#wasAll = isAll;
    return { kind: 'types', slices, withdrawn, isAll };
  }
}
