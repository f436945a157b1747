/**
 * Pushes the objects of one shard into a cache, for as long as it runs: the client of
 * `/services/cache/connect`.
 *
 *  sources ──batches──▶ pending ──frames──▶ window (at most the credit) ──acks──▶ durable
 *
 * C1 Whatever fails in between, the cache finally has the last version of a key that a source
 *    reported. Acknowledged mutations are durable there, and all others are sent again. If the
 *    sender cannot know which are durable, it resyncs the slice.
 * C2 Memory: the cache's credit in bytes and one batch per slice, however slow the cache is, and
 *    however long it is unreachable.
 * C3 Once `run` has returned, no timer, connection or open source remains.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { Term } from '../domain/push.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import { Notifier } from './notifier.js';
import { pause } from '../domain/base/promises.js';
import { failedParting, firstAttempt, reconnect, type Attempt, type Parting, type ReconnectBounds } from './reconnect.js';
import type { SenderOptions } from './sender-options.js';
import { SenderSession } from './sender-session.js';
import type { SenderConnection, SenderEnd, SenderState } from './sender-state.js';
import { SliceFeed } from './slice-feed.js';
import type { SliceSource } from './source.js';

/** The maximum backoff of a sender that has had the shard. */
const formerHolderBackoffMaxMs = 3_000;

export type SenderParts = Readonly<{
  clock: Clock;
  /** Uniform, 0 ≤ n < 1; spreads senders that reconnect at the same time. */
  random: () => number;
  turn: () => Promise<void>;
  log: Log;
  /**
   * Opens a connection, with its own timeout, or until `signal` is aborted. An error counts as a
   * failure, and the sender tries again; only an UpgradeRefused with the reason Forbidden is final.
   * `connectSocket` is the implementation for networks.
   */
  connect: (url: string, signal: AbortSignal) => Promise<FrameConnection>;
}>;

export class Sender {
  readonly #parts: SenderParts;
  readonly #options: SenderOptions;
  readonly #notifier = new Notifier();
  readonly #feeds = new Map<string, SliceFeed>();
  /** Readings of withdrawn slices that have not stopped yet. */
  readonly #closing = new Set<Promise<void>>();
  #connection: SenderConnection = { kind: 'idle' };
  #session: SenderSession | undefined;
  #life: 'new' | 'running' | 'over' = 'new';
  #refusedBefore = 0;
  #pushed = 0;
  #reconnects = 0;
  /** The last term that a cache gave this sender, which its next hello names. */
  #term: Term = 0;
  /** The position of the last ack. A cache detects by it whether it has lost data since. */
  #position = '';
  #isComplete = false;

  /** Throws if `urls` is empty. Does not connect until `run`. */
  constructor(parts: SenderParts, options: SenderOptions) {
    if (options.urls.length === 0) throw new Error('a sender needs a URL');
    this.#parts = parts;
    this.#options = options;
  }

  /**
   * Pushes one more slice of the sender's own shard; may be called at any time. The sender opens
   * `source` when a cache is connected. With `after`, it first waits until the cache has
   * acknowledged the sync of that slice; withdrawing that slice ends the wait.
   *
   * Throws if the slice was already added or is of another shard, if `after` was not added, or if
   * the sender has ended.
   */
  add(slice: Slice, source: SliceSource, { after }: Readonly<{ after?: Slice }> = {}): void {
    const name = formatSlice(slice);
    if (this.#life === 'over') throw new Error('the sender has ended');
    if (slice.shard !== this.#options.shard) throw new Error(`${name} is not of the shard ${this.#options.shard}`);
    if (this.#feeds.has(name)) throw new Error(`${name} was added already`);
    if (after !== undefined && !this.#feeds.has(formatSlice(after))) throw new Error(`${formatSlice(after)} was not added before ${name}`);
    const { clock, random, log } = this.#parts;
    const changed = (feed: SliceFeed): void => this.#changed(feed);
    const added = new SliceFeed({ slice, source, after }, { clock, random, log, changed }, this.#options);
    this.#feeds.set(name, added);
    this.#session?.named(slice);
    this.#changed(added);
  }

  /**
   * Stops pushing a slice and aborts its source. The cache keeps the objects, unless
   * `complete(true)` was called. Ignores unknown slices.
   */
  withdraw(slice: Slice): void {
    const feed = this.#feeds.get(formatSlice(slice));
    if (feed === undefined) return;
    this.#feeds.delete(formatSlice(slice));
    this.#refusedBefore += feed.refused;
    const closing = feed.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#session?.withdrawn(feed);
    this.#notifier.notify();
  }

  /**
   * Declares whether all slices of the shard were added. While they are, the cache removes every
   * other slice of the shard, and each slice that is withdrawn. Before the first call, and after a
   * call with false, the cache keeps such slices.
   */
  complete(isComplete: boolean): void {
    this.#isComplete = isComplete;
    this.#notifier.notify();
  }

  /**
   * Pushes until `signal` is aborted or the cache refuses this sender for good; may be called once.
   * Once aborted, the sender stops its sources, waits at most `shutdownGraceMs` for
   * acknowledgements, and sends a bye. Broken connections, slow caches and refused objects do not
   * end the run: they are logged and visible in the state.
   */
  async run(signal: AbortSignal): Promise<SenderEnd> {
    if (this.#life !== 'new') throw new Error('a sender runs once');
    this.#life = 'running';
    const stopSources = (): void => {
      for (const feed of this.#feeds.values()) void feed.close();
    };
    signal.addEventListener('abort', stopSources);
    try {
      return await this.#connectAgain(signal);
    } finally {
      signal.removeEventListener('abort', stopSources);
      stopSources();
      await this.#released();
      this.#life = 'over';
      this.#show({ kind: 'idle' });
    }
  }

  get state(): SenderState {
    const nowMs = this.#parts.clock.now();
    const window = this.#session?.welcomed?.window;
    const tally = window?.tally();
    const slices = [...this.#feeds.values()].map((feed) => feed.progress(nowMs, tally?.get(feed)));
    return {
      connection: this.#connection,
      slices,
      unacknowledged: window?.unacknowledged ?? { mutations: 0, bytes: 0 },
      pushed: this.#pushed,
      refused: slices.reduce((sum, { refused }) => sum + refused, this.#refusedBefore),
      lagMs: slices.reduce((most, { lagMs }) => Math.max(most, lagMs), 0),
      reconnects: this.#reconnects,
    };
  }

  /**
   * Yields the state at once, then after each change, at most every `stateIntervalMs`; states in
   * between are skipped. Ends when `signal` is aborted, and after the last state once `run` has
   * ended.
   */
  async *states(signal: AbortSignal): AsyncGenerator<SenderState, void, undefined> {
    while (!signal.aborted) {
      const seen = this.#notifier.notified;
      const isLast = this.#life === 'over';
      yield this.state;
      if (isLast) return;
      await pause(this.#parts.clock, this.#options.stateIntervalMs, signal);
      await this.#notifier.after(seen, signal);
    }
  }

  /**
   * For five seconds after a restart, a cache gives a shard to no new sender. The former sender
   * must reconnect in that time, so its backoff is shorter.
   */
  get #bounds(): ReconnectBounds {
    if (this.#term === 0) return this.#options;
    return { ...this.#options, backoffMaxMs: Math.min(this.#options.backoffMaxMs, formerHolderBackoffMaxMs) };
  }

  async #connectAgain(signal: AbortSignal): Promise<SenderEnd> {
    const { clock, random, log } = this.#parts;
    const { urls } = this.#options;
    let attempt: Attempt = firstAttempt;
    while (!signal.aborted) {
      const url = this.#url(attempt);
      this.#show({ kind: 'connecting', url, sinceMs: clock.now() });
      const parting = await this.#connect(url, signal);
      if (signal.aborted) break;

      const { message, reason } = parting;
      const next = reconnect(attempt, parting, { urls: urls.length, random, bounds: this.#bounds });
      if (next.kind === 'end') {
        log.error('sender.refused-permanently', { url, reason: next.reason, message });
        return { kind: 'refused', reason: next.reason, message };
      }
      const { afterMs } = next;
      attempt = next.attempt;
      log.warn('sender.disconnected', { url, reason, message, lastedMs: parting.lastedMs, next: this.#url(attempt), afterMs });
      this.#show({ kind: 'waiting', url: this.#url(attempt), untilMs: clock.now() + afterMs, message });
      await pause(clock, afterMs, signal);
      if (!signal.aborted) this.#reconnects += 1;
    }
    return { kind: 'stopped' };
  }

  async #connect(url: string, signal: AbortSignal): Promise<Parting> {
    let connection: FrameConnection;
    try {
      connection = await this.#parts.connect(url, signal);
    } catch (error) {
      return failedParting(error);
    }
    const { clock, turn, log } = this.#parts;
    this.#session = new SenderSession(
      {
        connection,
        feeds: this.#feeds,
        clock,
        turn,
        log: log.child({ url }),
        notifier: this.#notifier,
        term: this.#term,
        position: this.#position,
        isComplete: () => this.#isComplete,
        welcomed: (sinceMs, { cacheId, epoch, term }) => {
          this.#term = term;
          this.#show({ kind: 'connected', url, sinceMs, cacheId, epoch });
        },
        onStandby: () => this.#show({ kind: 'standby', url, sinceMs: clock.now() }),
        acknowledged: (position, accepted) => {
          this.#position = position;
          this.#pushed += accepted;
        },
      },
      this.#options,
    );
    try {
      return await this.#session.run(signal);
    } finally {
      this.#session = undefined;
    }
  }

  #changed(feed: SliceFeed): void {
    this.#session?.changed(feed);
    this.#notifier.notify();
  }

  #url({ urlIndex }: Attempt): string {
    return this.#options.urls[urlIndex] ?? '';
  }

  #show(connection: SenderConnection): void {
    this.#connection = connection;
    this.#notifier.notify();
  }

  /**
   * Waits for the sources to stop. A source that ignores its abort signal is left running after the
   * grace period.
   */
  async #released(): Promise<void> {
    const { clock, log } = this.#parts;
    const grace = new AbortController();
    const released = Promise.all([...this.#closing, ...[...this.#feeds.values()].map((feed) => feed.close())]).then(() => grace.abort());
    await pause(clock, this.#options.shutdownGraceMs, grace.signal);
    if (!grace.signal.aborted) log.error('sender.source.stuck', { graceMs: this.#options.shutdownGraceMs });
    else await released;
  }
}
