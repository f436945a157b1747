/**
 * A sender in one connection: hello, welcome, then all slices in turn for as long as it lasts.
 *
 *   hello ─▶ welcome ─▶ resume each slice ─▶ open · read · send, in turns ◀── ack, refuse, restate ─▶ bye
 *
 * N1 A source is read only while there is credit and the connection takes more: a slow cache stops its sources.
 * N2 Slices take turns, a frame each. A batch that finds too little credit keeps the turn until there is enough; otherwise
 *    small ones would always come before it.
 * N3 When the session ends, what was not acknowledged has gone back to its slices.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { BadFrame } from '../frames/bad-frame.js';
import { byes, type ByeReason } from '../frames/bye.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import { protocolVersion, type Frame, type FrameOf, type SliceFreshness } from '../frames/frame.js';
import { AckWatch } from './ack-watch.js';
import type { Bell } from './bell.js';
import { pause } from '../domain/pause.js';
import type { Parting } from './reconnect.js';
import { resume } from './resume.js';
import type { SenderOptions } from './sender-options.js';
import type { SliceFeed } from './slice-feed.js';
import { Window } from './window.js';

export type SenderSessionParts = Readonly<{
  connection: FrameConnection;
  /** By the text of their slice, in the order of their turns; they may come and go. */
  feeds: ReadonlyMap<string, SliceFeed>;
  clock: Clock;
  log: Log;
  bell: Bell;
  /** All slices that the shard has, while they are known. */
  types: () => readonly Slice[] | undefined;
  /** That of the last ack of all connections, '' before the first. */
  position: string;
  /** Told once, when the cache has answered. */
  welcomed: (sinceMs: number, cache: Readonly<{ cacheId: string; epoch: number }>) => void;
  /** Told where the cache stands whenever it acknowledges something. */
  acknowledged: (position: string) => void;
}>;

/** How soon it is told that a slice has lost its source, or has got it. */
const statusLookMs = 250;
/** One that lags less is not behind: it may only wait for its answer. */
const behindMs = 1_000;

/** What the welcome began. */
type Welcomed = Readonly<{ cacheId: string; limits: FrameOf<'welcome'>['limits']; window: Window<SliceFeed>; sinceMs: number }>;

export class SenderSession {
  readonly #parts: SenderSessionParts;
  readonly #options: SenderOptions;
  readonly #stop = new AbortController();
  readonly #timers = new Set<() => void>();
  #welcomed: Welcomed | undefined;
  #isDraining = false;
  #served: SliceFeed | undefined;
  #work: Promise<unknown> = Promise.resolve();
  /** What a bug threw while nobody waited for it. */
  #fault: Readonly<{ error: unknown }> | undefined;
  /** How it ended, once a side has said so. */
  #said: Readonly<{ reason: ByeReason | undefined; message: string; retryAfterMs?: number | undefined }> | undefined;

  constructor(parts: SenderSessionParts, options: SenderOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get welcomed(): Welcomed | undefined {
    return this.#welcomed;
  }

  /** Until the connection is closed; when aborted, it waits for what was sent to be acknowledged and says bye. */
  async run(signal: AbortSignal): Promise<Parting> {
    const { connection } = this.#parts;
    const drain = (): void => this.#drain();
    signal.addEventListener('abort', drain);
    this.#after(this.#options.welcomeTimeoutMs, () => {
      if (this.#welcomed === undefined) this.#leave('timeout', 'no welcome came in time');
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

  /** Names all slices, before anything is sent of one that is new. */
  tellTypes(): void {
    const { connection, types } = this.#parts;
    const slices = this.#welcomed === undefined || this.#isDraining ? undefined : types();
    if (slices !== undefined) connection.send({ kind: 'types', slices });
  }

  #hello(): Frame {
    const { shard, incarnation, agent } = this.#options;
    const { feeds, position } = this.#parts;
    const slices = [...feeds.values()].map(({ slice }) => slice);
    const told = { credit: undefined, limits: undefined, ...(position === '' ? {} : { position }) };
    return { kind: 'hello', protocol: protocolVersion, role: 'shard', name: shard, incarnation, route: [], slices, agent, ...told };
  }

  async #listen(): Promise<void> {
    const { connection } = this.#parts;
    try {
      for await (const frame of connection.frames()) {
        this.#take(frame);
        if (frame.kind === 'bye') return connection.terminate();
      }
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.#leave('protocol', error.message);
    }
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case 'welcome':
        return this.#welcomed === undefined ? this.#welcome(frame) : this.#leave('protocol', 'welcome came twice');
      case 'ack':
        return this.#acknowledge(frame);
      case 'refuse':
        return this.#refuse(frame);
      case 'restate':
        return this.#restate(frame);
      case 'bye':
        this.#said ??= frame;
        return;
      case 'status':
        return;
      default:
        return this.#leave('protocol', `${frame.kind} is no frame for a shard`);
    }
  }

  #welcome({ protocol, cacheId, epoch, stated, credit, limits }: FrameOf<'welcome'>): void {
    if (protocol !== protocolVersion) return this.#leave('unsupported', `protocol ${protocol} is not spoken here, ${protocolVersion} is`);
    const { feeds, clock, log, welcomed } = this.#parts;
    const sinceMs = clock.now();
    this.#welcomed = { cacheId, limits, window: new Window(credit), sinceMs };
    const statedThere = new Set(stated.map(formatSlice));
    const anew = [...feeds].filter(([name, feed]) => resume(feed.knowledge(), { cacheId, statedThere: statedThere.has(name) }) === 'state');
    for (const [, feed] of anew) void feed.close();
    log.info('sender.connected', { cacheId, epoch, slices: feeds.size, stating: anew.length });
    welcomed(sinceMs, { cacheId, epoch });
    this.tellTypes();
    this.#work = Promise.all([this.#owned(this.#pump(this.#welcomed)), this.#owned(this.#tellStatus())]);
  }

  #acknowledge({ sequence, credit, position }: FrameOf<'ack'>): void {
    const done = this.#welcomed?.window.acknowledge(sequence, credit);
    if (this.#welcomed === undefined || done === undefined) return this.#leave('protocol', `${sequence} was acknowledged and never sent`);
    for (const { owner, item } of done) owner.acknowledge(item, this.#welcomed.cacheId);
    this.#parts.acknowledged(position ?? '');
    this.#parts.bell.ring();
    if (this.#isDraining && this.#welcomed.window.unacknowledged.mutations === 0) this.#leave('shutdown', 'the sender is stopping');
  }

  #refuse({ sequence, reason, message }: FrameOf<'refuse'>): void {
    const sent = this.#welcomed?.window.find(sequence);
    if (sent === undefined) return this.#leave('protocol', `${sequence} was refused and is not under way`);
    sent.owner.refuse(sent.item, { reason, message });
    this.#parts.bell.ring();
  }

  #restate({ slice, reason }: FrameOf<'restate'>): void {
    this.#parts.feeds.get(formatSlice(slice))?.restate(reason);
    this.#parts.bell.ring();
  }

  async #pump(welcomed: Welcomed): Promise<void> {
    const { connection, bell } = this.#parts;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const seen = bell.rings;
      if (this.#sendNext(welcomed)) {
        bell.ring();
        await nextTurn();
        await connection.drained();
      } else await bell.after(seen, signal);
    }
  }

  /** Sends what is next in turn, having asked for what may come behind it. False: nothing can be sent before something changes. */
  #sendNext(welcomed: Welcomed): boolean {
    const { window, cacheId, limits } = welcomed;
    const feeds = [...this.#parts.feeds.values()];
    for (const feed of feeds) {
      if (feed.mayOpen && this.#isDue(feed, cacheId)) feed.open();
      if (feed.mayRead && window.hasRoom) feed.read();
    }

    const start = this.#served === undefined ? 0 : feeds.indexOf(this.#served) + 1;
    const next = [...feeds.slice(start), ...feeds.slice(0, start)].find(({ hasPending }) => hasPending);
    if (next === undefined) return false;
    const batch = next.cut({
      mutationsMax: Math.min(this.#options.batchMutationsMax, window.credit.mutations),
      bytesMax: Math.min(this.#options.batchBytesMax, window.credit.bytes),
      limits,
    });
    if (!window.fits(batch.sent.length, batch.bytes)) return false;
    this.#served = next;
    const frame = next.send(batch, (sent) => window.add(next, sent));
    if (frame !== undefined) this.#parts.connection.send(frame);
    return true;
  }

  #isDue({ after }: SliceFeed, cacheId: string): boolean {
    const first = after === undefined ? undefined : this.#parts.feeds.get(after);
    return first === undefined || first.statedAt === cacheId;
  }

  /** Now and then, and soon when a slice has got its source or lost it, or has fallen behind or caught up. */
  async #tellStatus(): Promise<void> {
    const { connection, clock } = this.#parts;
    const { signal } = this.#stop;
    let told: readonly SliceFreshness[] = [];
    let toldMs = clock.now();
    const acks = new AckWatch(clock, this.#options);
    while (!signal.aborted) {
      const freshness = this.#freshness();
      const isDue = clock.now() - toldMs >= this.#options.statusIntervalMs;
      if (freshness.length > 0 && (isDue || freshness.some((each, i) => isNews(each, told[i])))) {
        connection.send({ kind: 'status', freshness });
        [told, toldMs] = [freshness, clock.now()];
      }
      if (this.#welcomed !== undefined && acks.isOverdue(this.#welcomed.window))
        this.#leave('timeout', 'nothing was acknowledged for too long');
      await pause(clock, statusLookMs, signal);
    }
  }

  #freshness(): readonly SliceFreshness[] {
    const tally = this.#welcomed?.window.tally();
    const nowMs = this.#parts.clock.now();
    return [...this.#parts.feeds.values()].map((feed) => {
      const { slice, phase, connected, lagMs, whole } = feed.progress(nowMs, tally?.get(feed));
      return { slice, connected, synced: phase === 'stated', lagMs, whole };
    });
  }

  #drain(): void {
    this.#isDraining = true;
    this.#stop.abort();
    const isDone = this.#welcomed === undefined || this.#welcomed.window.unacknowledged.mutations === 0;
    if (isDone) return this.#leave('shutdown', 'the sender is stopping');
    this.#after(this.#options.shutdownGraceMs, () => this.#leave('shutdown', 'the sender is stopping'));
  }

  #leave(reason: ByeReason, message: string): void {
    this.#said ??= { reason: reason === 'unsupported' ? reason : undefined, message };
    this.#parts.connection.close(reason, message);
  }

  /** A bye says it; where one was lost, the close code does. */
  #parting(code: number): Parting {
    const { clock } = this.#parts;
    const lastedMs = this.#welcomed === undefined ? 0 : clock.now() - this.#welcomed.sinceMs;
    const { reason, message, retryAfterMs } = this.#said ?? { reason: reasonOf(code), message: `the connection closed with ${code}` };
    return { lastedMs, reason, message, retryAfterMs };
  }

  #after(delayMs: number, task: () => void): void {
    this.#timers.add(this.#parts.clock.after(delayMs, task));
  }

  /** A bug in it must not float: it cuts the connection off, and `run` throws it. */
  async #owned(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#fault ??= { error };
      this.#parts.connection.terminate();
    }
  }
}

const reasonsByCode = new Map<number, ByeReason>();
for (const reason of Object.keys(byes) as ByeReason[]) reasonsByCode.set(byes[reason].code, reason);

function reasonOf(code: number): ByeReason | undefined {
  return reasonsByCode.get(code);
}

function isNews({ connected, synced, lagMs, whole }: SliceFreshness, told: SliceFreshness | undefined): boolean {
  return connected !== told?.connected || synced !== told.synced || whole !== told.whole || lagMs >= behindMs !== told.lagMs >= behindMs;
}
