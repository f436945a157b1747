/**
 * The connected children: one session for each cache name. The child's certificate must allow the
 * name.
 *
 *   connected    hello of a later process    of the same process    of an earlier process
 *   none         accepted                    accepted               accepted
 *   a process    replaces it                 replaces it            refused: a disk may have been
 *                                                                   copied, or a name given twice
 *
 * V1 This cache refuses a child that is itself or one of the caches above it, so there are no
 *    loops.
 *
 * Bounds: the endpoint limits the sessions; one lane for each name that ever connected.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import { entryOf } from '../domain/base/entry-of.js';
import { isMaster, type Caller } from '../domain/caller.js';
import type { Clock } from '../domain/ports.js';
import type { PushLane, Writer } from '../domain/store-port.js';
import { childNeighbour, parseCacheName } from '../domain/via.js';
import type { ByeReason } from '../frames/bye.js';
import { closingFields, type FrameConnection } from '../frames/frame-connection.js';
import { protocolVersion, type Frame, type FrameOf } from '../frames/frame.js';
import type { LinkPeer, LinkSession } from './links/link-session.js';

export type ChildrenParts = Readonly<{
  writer: Pick<Writer, 'lane'>;
  clock: Clock;
  log: BoundedLog;
  /** Makes the session that starts with the welcome. */
  open: (connection: FrameConnection, lane: PushLane, peer: LinkPeer, name: string) => LinkSession;
  welcome: () => FrameOf<'welcome'>;
  /** The id of this cache, then the ids of the caches above it. */
  route: () => readonly string[];
}>;

export type Child = Readonly<{
  name: string;
  cacheId: string;
  term: number;
  agent: string;
  peer: string;
  sinceMs: number;
  session: LinkSession;
  gone: Promise<void>;
}>;

type Refused = Readonly<{ reason: ByeReason; message: string }>;

const refusedChildRetryMs = 10_000;

export class Children {
  readonly #parts: ChildrenParts;
  readonly #lanes = new Map<string, PushLane>();
  readonly #connected = new Map<string, Child>();
  readonly #barred = new Set<string>();

  constructor(parts: ChildrenParts) {
    this.#parts = parts;
  }

  get connected(): Iterable<Child> {
    return this.#connected.values();
  }

  find(name: string): Child | undefined {
    return this.#connected.get(name);
  }

  /**
   * Runs the task while this cache refuses connections of that child. Returns undefined, without
   * running it, if the child is connected or another such task for it is running.
   */
  async without<T>(name: string, task: () => Promise<T>): Promise<T | undefined> {
    if (this.#connected.has(name) || this.#barred.has(name)) return undefined;
    this.#barred.add(name);
    try {
      return await task();
    } finally {
      this.#barred.delete(name);
    }
  }

  /** Resolves when the connection is closed. `hello` was already read from `frames`. */
  async accept(
    connection: FrameConnection,
    { hello, frames, caller }: Readonly<{ hello: FrameOf<'hello'>; frames: AsyncIterator<Frame>; caller: Caller }>,
  ): Promise<void> {
    const { clock, log } = this.#parts;
    const { name, term, agent, route, credit, limits } = hello;
    const [cacheId] = route;
    const refused = this.#refusalOf(hello, caller);
    if (refused !== undefined || cacheId === undefined || cacheId === '' || credit === undefined || limits === undefined) {
      const { reason, message } = refused ?? {
        reason: 'protocol',
        message: 'the hello of a cache must have its id, its credit and its limits',
      };
      log.warn('link.refused', { name, peer: connection.peer, reason, message });
      connection.close(reason, message, refusedChildRetryMs);
      await connection.closed;
      return;
    }
    const lane = entryOf(this.#lanes, name, () => this.#parts.writer.lane());
    const session = this.#parts.open(connection, lane, { neighbour: childNeighbour(name), cacheId, credit, limits }, name);
    const before = this.#connected.get(name);
    const running = this.#run(session, frames, before);
    const child: Child = { name, cacheId, term, agent, peer: connection.peer, sinceMs: clock.now(), session, gone: running };
    this.#connected.set(name, child);
    log.info('link.child-connected', { name, cacheId, peer: connection.peer, agent });
    try {
      await running;
    } finally {
      if (this.#connected.get(name) === child) this.#connected.delete(name);
      log.info('link.child-disconnected', { name, cacheId, peer: connection.peer, ...closingFields(await connection.closed) });
    }
  }

  /**
   * Ends the earlier session of that child and waits for it, so its pushes are in the lane ahead of
   * those of the new session.
   */
  async #run(session: LinkSession, frames: AsyncIterator<Frame>, before: Child | undefined): Promise<void> {
    before?.session.bye('replaced', 'another connection of the same cache has replaced this one');
    await before?.gone.catch(() => {});
    const { welcome, route } = this.#parts;
    await session.run(frames, () => [welcome(), { kind: 'route', route: route() }]);
  }

  #refusalOf({ protocol, name, term, route: [cacheId] }: FrameOf<'hello'>, caller: Caller): Refused | undefined {
    if (protocol < protocolVersion)
      return { reason: 'unsupported', message: `this cache supports protocol ${protocolVersion}, not ${protocol}` };
    const mayBe = isMaster(caller) || (caller.speaksFor?.kind === 'cache' && caller.speaksFor.name === name);
    if (!mayBe || parseCacheName(name) === undefined)
      return { reason: 'forbidden', message: `the certificate does not speak for a cache named ${JSON.stringify(name)}` };
    const [own, ...above] = this.#parts.route();
    if (cacheId === own) return { reason: 'loop', message: 'a cache cannot follow itself' };
    if (cacheId !== undefined && above.includes(cacheId)) return { reason: 'loop', message: 'a cache cannot follow a cache below itself' };
    if (this.#barred.has(name)) return { reason: 'unavailable', message: 'a request to forget this child is in progress' };
    const before = this.#connected.get(name);
    if (before === undefined || term >= before.term) return undefined;
    return {
      reason: 'forbidden',
      message: 'a process of that name that started later is connected: check whether two processes use one disk or certificate',
    };
  }
}
