/**
 * The link of this cache to its parent, for the life of the cache. It connects, greets, and
 * reconnects after a break. sender/reconnect.ts decides when.
 *
 *   away ──▶ connecting ──▶ greeting ── welcome ──▶ open ──▶ away …
 *
 * A cache serves its shards with or without a parent. Even if the parent refuses this cache for
 * good, the cache connects again after `refusedRetryMs`, because the parent's policies or the
 * certificates may change.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import { firstFrame, type FrameConnection } from '../../frames/frame-connection.js';
import { protocolVersion, type Credit, type Frame, type FrameLimits } from '../../frames/frame.js';
import {
  failedParting,
  isFinal,
  firstAttempt,
  reconnect,
  type Attempt,
  type Parting,
  type ReconnectBounds,
} from '../../sender/reconnect.js';
import type { LinkPeer, LinkSession } from './link-session.js';

/**
 * All children of a parent lose it at the same moment, so each reconnects after a random delay. The
 * delay is at most one second, or two after further failures. A link that broke for a moment is
 * open again within one second. Children reach a restarted parent within two seconds. So all caches
 * are equal again within three seconds.
 */
export const linkReconnectBounds: ReconnectBounds = {
  backoffBaseMs: 1_000,
  backoffMaxMs: 2_000,
  lastedMs: 2_000,
  retryAfterMaxMs: 300_000,
};

export type LinkParts = Readonly<{
  clock: Clock;
  random: () => number;
  log: Log;
  connect: (url: string, signal: AbortSignal) => Promise<FrameConnection>;
  open: (connection: FrameConnection, peer: LinkPeer) => LinkSession;
}>;

export type LinkBounds = ReconnectBounds &
  Readonly<{
    urls: readonly string[];
    welcomeTimeoutMs: number;
    /** The delay after the parent has refused this cache for good. */
    refusedRetryMs: number;
  }>;

export type LinkOptions = LinkBounds &
  Readonly<{
    hello: Readonly<{ name: string; cacheId: string; term: number; agent: string; credit: Credit; limits: FrameLimits }>;
  }>;

export type LinkState =
  /** `failures`: how many in a row; `message` describes the last one. */
  | Readonly<{ kind: 'connecting'; url: string; sinceMs: number; failures: number; message: string }>
  | Readonly<{ kind: 'open'; url: string; sinceMs: number; cacheId: string; session: LinkSession }>;

export class Link {
  readonly #parts: LinkParts;
  readonly #options: LinkOptions;
  #state: LinkState;

  /** Throws if there is no URL. Does nothing until `run`. */
  constructor(parts: LinkParts, options: LinkOptions) {
    const [url] = options.urls;
    if (url === undefined) throw new Error('a link needs the URL of a parent');
    this.#parts = parts;
    this.#options = options;
    this.#state = { kind: 'connecting', url, sinceMs: parts.clock.now(), failures: 0, message: '' };
  }

  get state(): LinkState {
    return this.#state;
  }

  get session(): LinkSession | undefined {
    return this.#state.kind === 'open' ? this.#state.session : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#parts;
    const { urls } = this.#options;
    let attempt: Attempt = firstAttempt;
    while (!signal.aborted) {
      const url = urls[attempt.urlIndex] ?? '';
      const parting = await this.#connect(url, signal);
      if (signal.aborted) {
        this.#state = { kind: 'connecting', url, sinceMs: clock.now(), failures: 0, message: '' };
        return;
      }
      const next = reconnect(attempt, this.#patient(parting), { urls: urls.length, random, bounds: this.#options });
      if (next.kind === 'end') throw new Error('a link reconnects, whatever its parent sends');
      attempt = next.attempt;
      const { reason, message, lastedMs } = parting;
      log.warn('link.disconnected', { url, reason, message, lastedMs, afterMs: next.afterMs });
      const { urlIndex, failures } = attempt;
      this.#state = { kind: 'connecting', url: urls[urlIndex] ?? '', sinceMs: clock.now(), failures, message };
      await pause(clock, next.afterMs, signal);
    }
  }

  #patient(parting: Parting): Parting {
    const isRefused = isFinal(parting.reason) || parting.reason === 'loop';
    return isRefused && parting.retryAfterMs === undefined ? { ...parting, retryAfterMs: this.#options.refusedRetryMs } : parting;
  }

  async #connect(url: string, signal: AbortSignal): Promise<Parting> {
    let connection: FrameConnection;
    try {
      connection = await this.#parts.connect(url, signal);
    } catch (error) {
      return failedParting(error);
    }
    const leave = (): void => connection.close('shutdown', 'the cache is stopping');
    signal.addEventListener('abort', leave);
    try {
      if (signal.aborted) leave();
      return await this.#greet(url, connection);
    } finally {
      signal.removeEventListener('abort', leave);
      connection.terminate();
    }
  }

  async #greet(url: string, connection: FrameConnection): Promise<Parting> {
    const { clock, log, open } = this.#parts;
    const { hello, welcomeTimeoutMs } = this.#options;
    const frames = connection.frames()[Symbol.asyncIterator]();
    const cancel = clock.after(welcomeTimeoutMs, () =>
      connection.close('timeout', `no welcome arrived within ${welcomeTimeoutMs / 1000} s`),
    );
    connection.send(helloFrame(hello));
    const first = await firstFrame(frames);
    cancel();
    if (typeof first === 'string') return { lastedMs: 0, reason: undefined, message: first, retryAfterMs: undefined };
    if (first.kind === 'bye') return { lastedMs: 0, ...first };
    if (first.kind !== 'welcome')
      return { lastedMs: 0, reason: undefined, message: `the parent sent ${first.kind} instead of welcome`, retryAfterMs: undefined };
    const { protocol, cacheId, credit, limits } = first;
    if (protocol !== protocolVersion) {
      connection.close('unsupported', `this cache supports protocol ${protocolVersion}, not ${protocol}`);
      return {
        lastedMs: 0,
        reason: 'unsupported',
        message: `the parent supports protocol ${protocol}, and this cache ${protocolVersion}`,
        retryAfterMs: undefined,
      };
    }
    if (cacheId === hello.cacheId) {
      connection.close('loop', 'a cache cannot follow itself');
      return { lastedMs: 0, reason: 'loop', message: 'the parent is this cache itself', retryAfterMs: undefined };
    }
    const session = open(connection, { neighbour: 'parent', cacheId, credit, limits });
    const sinceMs = clock.now();
    this.#state = { kind: 'open', url, sinceMs, cacheId, session };
    log.info('link.connected', { url, cacheId });
    const end = await session.run(frames, () => []);
    return { lastedMs: clock.now() - sinceMs, ...end };
  }
}

function helloFrame({ name, cacheId, term, agent, credit, limits }: LinkOptions['hello']): Frame {
  return {
    kind: 'hello',
    protocol: protocolVersion,
    role: 'cache',
    name,
    process: '',
    term,
    takesOver: false,
    route: [cacheId],
    agent,
    credit,
    limits,
  };
}
