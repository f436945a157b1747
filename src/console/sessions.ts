/**
 * Access to the console without a client certificate, which few browsers have. A caller who may
 * read the cache requests a link. The first browser that opens the link gets a session with the
 * caller's rights.
 *
 *   link ─ opened once within linkMs ─▶ session ─ sessionMs, certificate expires, other CAs ─▶ gone
 *
 * Tokens are 256 random bits. Only their hashes are kept, in memory. Links and sessions are bounded
 * for each caller and in all. Beyond a bound the oldest is removed, the caller's own first.
 */
import { createHash } from 'node:crypto';
import type { Caller } from '../domain/caller.js';
import type { Clock } from '../domain/ports.js';

/** `randomBytes` returns that many bytes from a source that nobody can guess. */
export type SessionParts = Readonly<{ clock: Clock; randomBytes: (count: number) => Buffer }>;

export const linkMs = 60_000;
export const sessionMs = 3_600_000;
const tokenBytes = 32;
const linksMax = { perCaller: 10, total: 1_000 };
const sessionsMax = { perCaller: 50, total: 5_000 };

type Bound = typeof linksMax;

type Grant = Readonly<{ caller: Caller; untilMs: number }>;

export class ConsoleSessions {
  readonly #parts: SessionParts;
  /** Keyed by the hash of the token, the oldest first. */
  readonly #links = new Map<string, Grant>();
  readonly #sessions = new Map<string, Grant>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** The token of a new link, for a caller who may read. */
  makeLink(caller: Caller): string {
    return this.#add(this.#links, { caller, untilMs: this.#nowMs + linkMs }, linksMax);
  }

  /** The token of a new session; undefined if the link was used, has expired, or does not exist. */
  enter(linkToken: string): string | undefined {
    const hash = hashOf(linkToken);
    const link = this.#links.get(hash);
    this.#links.delete(hash);
    if (link === undefined || link.untilMs < this.#nowMs) return undefined;
    return this.#add(this.#sessions, { caller: link.caller, untilMs: this.#nowMs + sessionMs }, sessionsMax);
  }

  /** Undefined if the session does not exist or has ended. */
  callerOf(sessionToken: string): Caller | undefined {
    const hash = hashOf(sessionToken);
    const session = this.#sessions.get(hash);
    if (session === undefined) return undefined;
    const { caller, untilMs } = session;
    const isOver = untilMs < this.#nowMs || (caller.validUntilMs !== undefined && caller.validUntilMs < this.#parts.clock.wallMs());
    if (!isOver) return caller;
    this.#sessions.delete(hash);
    return undefined;
  }

  /** Revokes all links and sessions, because the CAs of clients have changed. */
  endAll(): void {
    this.#links.clear();
    this.#sessions.clear();
  }

  get #nowMs(): number {
    return this.#parts.clock.now();
  }

  #add(held: Map<string, Grant>, one: Grant, bound: Bound): string {
    const token = this.#parts.randomBytes(tokenBytes).toString('base64url');
    const own = [...held].filter(([, { caller }]) => caller.user === one.caller.user);
    const oldest = own.length >= bound.perCaller ? own[0]?.[0] : held.size >= bound.total ? held.keys().next().value : undefined;
    if (oldest !== undefined) held.delete(oldest);
    held.set(hashOf(token), one);
    return token;
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
