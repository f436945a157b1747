/**
 * Accepts pushers and child caches: a websocket at `connectPath`, on the same port and with the
 * same certificates as everything else. The upgrade of an unauthorized caller is refused before a
 * websocket exists. The first frame names the peer's role.
 *
 * Bounds: `pushersMax` pushers and `childrenMax` children, so that neither role uses up the other's
 * share, and `sessionsPerCallerMax` connections of one caller. Further connections get 503 and may
 * retry later. A caller that may have either role names one in its hello. The endpoint then refuses
 * it if that role is full.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Log } from '../../diagnostics/log.js';
import { atExpiry, mayOpenSession, type Caller } from '../../domain/caller.js';
import { badRequest, type Refusal } from '../../domain/errors.js';
import type { ByeReason } from '../../frames/bye.js';
import { firstFrame, type FrameConnection } from '../../frames/frame-connection.js';
import type { Frame, FrameOf } from '../../frames/frame.js';
import { connectPath } from '../../frames/socket-options.js';
import { PushSession, type PushContext } from './push-session.js';

/** A peer that has sent its hello; `frames` has the frames after it. */
export type Greeting = Readonly<{ hello: FrameOf<'hello'>; frames: AsyncIterator<Frame>; caller: Caller }>;

export type EndpointParts = PushContext &
  Readonly<{
    log: Log;
    /** Accepts a child cache. Resolves once its connection is closed. */
    acceptCache: (connection: FrameConnection, greeting: Greeting) => Promise<void>;
    /** Resolves in a later turn of the event loop, when it is this peer's turn to work. */
    turn: (peer: string) => Promise<void>;
    /**
     * Makes the websocket. If the handshake fails, `accept` answers the request and returns
     * undefined.
     */
    accept: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<FrameConnection | undefined>;
    refuse: (socket: Duplex, refusal: Refusal) => void;
  }>;

export type EndpointLimits = Readonly<{ pushersMax: number; childrenMax: number; sessionsPerCallerMax: number; helloTimeoutMs: number }>;

type Role = FrameOf<'hello'>['role'];

type Bye = (reason: ByeReason, message: string, retryAfterMs?: number) => void;

/** `role`: undefined until it is known. `bye` ends the connection. */
type OpenConnection = { readonly user: string; role: Role | undefined; bye: Bye };

const noRoom = 'the server accepts no more sessions now';
const noRoomRetryMs = 1_000;

export class Endpoint {
  readonly #parts: EndpointParts;
  readonly #limits: EndpointLimits;
  readonly #sessions = new Map<FrameConnection, OpenConnection>();
  readonly #running = new Set<Promise<void>>();
  readonly #log: BoundedLog;
  #isClosing = false;

  constructor(parts: EndpointParts, limits: EndpointLimits) {
    this.#parts = parts;
    this.#log = new BoundedLog(parts);
    this.#limits = limits;
  }

  get openPushers(): number {
    return this.#countOf('shard');
  }

  /**
   * Takes over the socket of an upgrade request. `refused`: a refusal that the caller knows
   * already.
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller, refused?: Refusal): void {
    const refusal = refused ?? this.#refusalOf(request, caller);
    if (refusal === undefined) return this.#own(this.#accept(request, socket, head, caller));
    this.#parts.metrics.refusals.add(1, { reason: refusal.reason });
    this.#log.warn('push.upgrade-refused', { user: caller.user, path: pathOf(request), reason: refusal.reason });
    this.#parts.refuse(socket, refusal);
  }

  /**
   * Ends every connection. Peers may reconnect at once, to another cache or to this one after its
   * restart. Terminates connections that are open after `graceMs`, and resolves when all are
   * closed.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    for (const { bye } of this.#sessions.values()) bye('shutdown', 'the server is stopping', 0);
    const cancel = this.#parts.clock.after(graceMs, () => {
      for (const connection of this.#sessions.keys()) connection.terminate();
    });
    await Promise.all(this.#running);
    cancel();
  }

  #own(task: Promise<void>): void {
    const running = task
      .catch((error: unknown) => this.#parts.log.error('push.failed', { error }))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #refusalOf(request: IncomingMessage, caller: Caller): Refusal | undefined {
    const path = pathOf(request);
    // Not NotFound, because to clients that means the absence of an object.
    if (path !== connectPath) return badRequest(`only ${connectPath} accepts an upgrade to another protocol`);
    if (!mayOpenSession(caller)) return forbidden(caller, path);
    // A browser names the page that it acts for in Origin, and would send its user's certificate
    // for any page.
    if (request.headers.origin !== undefined) return forbidden(caller, path);
    if (this.#isClosing) return { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
    const own = [...this.#sessions.values()].filter(({ user }) => user === caller.user).length;
    const isCallerFull = own >= this.#limits.sessionsPerCallerMax;
    if (!isCallerFull && this.#hasRoom(roleOf(caller))) return undefined;
    const message = isCallerFull ? `the caller has ${own} sessions, the most that a caller may have` : noRoom;
    return { reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: noRoomRetryMs / 1_000 } };
  }

  #hasRoom(role: Role | undefined, besides?: OpenConnection): boolean {
    const { pushersMax, childrenMax } = this.#limits;
    if (role === undefined) return this.#hasRoom('shard') || this.#hasRoom('cache');
    return this.#countOf(role, besides) < (role === 'shard' ? pushersMax : childrenMax);
  }

  /** A connection whose role is not known counts for both roles. */
  #countOf(role: Role, besides?: OpenConnection): number {
    let count = 0;
    for (const open of this.#sessions.values()) if (open !== besides && (open.role ?? role) === role) count += 1;
    return count;
  }

  async #accept(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): Promise<void> {
    const connection = await this.#parts.accept(request, socket, head);
    if (connection === undefined) return;
    const open: OpenConnection = { user: caller.user, role: roleOf(caller), bye: (...why) => connection.close(...why) };
    // The handshake checked the certificate once. The session must still end when it expires.
    const cancel = atExpiry(caller, this.#parts.clock, () => open.bye('forbidden', 'the certificate has expired', 0));
    this.#sessions.set(connection, open);
    try {
      if (this.#isClosing) open.bye('shutdown', 'the server is stopping', 0);
      await this.#greet(connection, open, caller);
    } finally {
      cancel();
      this.#sessions.delete(connection);
    }
  }

  async #greet(connection: FrameConnection, open: OpenConnection, caller: Caller): Promise<void> {
    const { clock, metrics, acceptCache } = this.#parts;
    const cancel = clock.after(this.#limits.helloTimeoutMs, () =>
      connection.close('timeout', `no hello arrived within ${this.#limits.helloTimeoutMs / 1000} s`),
    );
    const frames = connection.frames()[Symbol.asyncIterator]();
    const first = await firstFrame(frames);
    cancel();
    if (typeof first !== 'string') metrics.framesReceived.add(1, { kind: first.kind });
    if (typeof first === 'string' || first.kind !== 'hello') {
      const why = typeof first === 'string' ? first : `a session begins with hello, not with ${first.kind}`;
      connection.close('protocol', why);
      await connection.closed;
      return;
    }
    if (open.role === undefined && !this.#hasRoom(first.role, open)) {
      connection.close('unavailable', noRoom, noRoomRetryMs);
      await connection.closed;
      return;
    }
    open.role ??= first.role;
    if (first.role === 'cache') return acceptCache(connection, { hello: first, frames, caller });
    const parts = { ...this.#parts, log: this.#log, turn: () => this.#parts.turn(connection.peer) };
    const session = new PushSession(connection, caller, parts);
    open.bye = (...why) => session.bye(...why);
    await session.run(first, frames);
  }
}

function forbidden({ user }: Caller, path: string): Refusal {
  return { reason: 'Forbidden', message: `forbidden: User ${JSON.stringify(user)} cannot connect to ${JSON.stringify(path)}`, details: {} };
}

/** Undefined for a master, whose session may have either role. */
function roleOf({ speaksFor }: Caller): Role | undefined {
  return speaksFor?.kind === 'shard' || speaksFor?.kind === 'cache' ? speaksFor.kind : undefined;
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? url;
}
