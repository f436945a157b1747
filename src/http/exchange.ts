/**
 * One request and its answer, as one thing with one end.
 *
 *   admitted ──▶ body ──▶ answer, or watch ──▶ all of it taken ──▶ rest of the body dropped ──▶ ended
 *      └───────────┴────────────┴── time is up, the reader stopped, the connection is gone ────▶ ended
 *
 * X1 It holds its slot, its deadline and its room in memory until the last byte was taken or its stream is destroyed, and returns all of them
 *    at its end, whatever Node emits.
 * X2 It ends once. Whoever waits for it is released.
 * X3 An answer is sent whole before what is left of the body is given up: at most `dropMs` of it is read and dropped.
 * X4 A reader that takes nothing for `sendTimeoutMs` is cut off: the exchange, or the connection, if nothing moves and others wait for room.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Budget } from '../domain/budget.js';
import type { Caller } from '../domain/caller.js';
import type { Pace } from '../domain/pace.js';
import type { Clock } from '../domain/ports.js';
import type { Room } from '../domain/room.js';
import { ExchangeRoom } from './exchange-room.js';
import type { LimitName, Quota } from './quotas.js';
import { headerBytesOf } from './session-settings.js';
import { transportOf, type Transport } from './transport.js';

/** How much is written at a time. */
const partBytesMax = 256 * 1024;
/** What of its headers is part of the cost of a watch. */
const watchBytes = 4 * 1024;
/** How long the rest of an unwanted body may take, once the request is answered. */
const dropMs = 1_000;

/** The connection that it is on. */
export interface ExchangeOwner {
  readonly clock: Clock;
  readonly quota: Quota;
  readonly bufferedBytes: Budget;
  readonly sendTimeoutMs: number;
  /** Of all connections together. */
  readonly pace: Pick<Pace, 'turn'>;
  /** The caller, by its certificate as it is valid now. */
  readonly callerNow: Caller;
  /** Until when the caller's certificate is good; undefined without one. */
  readonly validUntilMs: number | undefined;
  /** How many parts the peer has taken, of all that is on the connection. */
  partsTaken: number;
  /** Resolves when it is the caller's turn to have a body or a page read, in a later turn of the event loop. */
  turn(): Promise<void>;
  /** What to throw when a limit is reached. */
  refused(limit: LimitName): Error;
  /** The peer has taken nothing of it for `sendTimeoutMs`; whether it took anything else meanwhile. */
  stalled(exchange: Exchange, anythingTaken: boolean): void;
  /** Called once, at its end. */
  ended(exchange: Exchange): void;
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What is in memory for it: its body, and what of its answer has not been taken. */
  readonly room: ExchangeRoom;
  readonly #owner: ExchangeOwner;
  readonly #transport: Transport;
  readonly #endTasks = new Set<() => void>();
  /** What it has taken of each limit, and will return. */
  readonly #taken: { limit: LimitName; amount: number }[] = [];
  #hasBegun = false;
  #isEnded = false;
  #cancelDeadline: (() => void) | undefined;
  #cancelStall: (() => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, owner: ExchangeOwner) {
    this.request = request;
    this.response = response;
    this.#owner = owner;
    this.room = new ExchangeRoom(owner.bufferedBytes, () => owner.turn());
    this.#transport = transportOf(request, response);
    this.#transport.listen({ taken: () => this.#onTaken(), gone: () => this.end() });
  }

  get caller(): Caller {
    return this.#owner.callerNow;
  }

  get validUntilMs(): number | undefined {
    return this.#owner.validUntilMs;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether its peer took it back before its turn came. */
  get wasTakenBack(): boolean {
    return this.#isEnded && !this.#hasBegun;
  }

  /** Its turn has come: it is being answered. */
  begin(): void {
    this.#hasBegun = true;
  }

  /** Whether nothing more is to be written: it has ended, or its answer is complete. */
  get isOver(): boolean {
    return this.#isEnded || this.response.writableEnded;
  }

  /** Runs the task when the exchange ends, at once if it has. The result takes the task back. */
  onEnd(task: () => void): () => void {
    if (this.#isEnded) {
      task();
      return () => {};
    }
    this.#endTasks.add(task);
    return () => void this.#endTasks.delete(task);
  }

  /** For what has come from a server that it was passed on to, and its peer does not take. */
  get unread(): Pick<Room, 'tryTake' | 'give'> {
    const { unreadBytes } = this.#owner.quota;
    const tryTake = (bytes: number): boolean => {
      const hasRoom = unreadBytes.tryTake(bytes);
      if (!hasRoom) this.refused('unreadBytes');
      return hasRoom;
    };
    return { tryTake, give: (bytes) => unreadBytes.give(bytes) };
  }

  /** What to throw when a limit is reached; counts and logs it. */
  refused(limit: LimitName): Error {
    return this.#owner.refused(limit);
  }

  /** Takes a request's slot. Throws Refused(429). */
  admit(): void {
    this.#take('requests', 1);
  }

  /**
   * Continues as a watch: it counts as one, and has no deadline but its own. Long headers count as long as it lasts. A body that it should not have is dropped.
   * Throws Refused(429).
   */
  becomeWatch(selectorBytes: number): void {
    this.#take('selectorBytes', selectorBytes);
    this.#take('bufferedBytes', Math.max(0, headerBytesOf(this.request) - watchBytes));
    this.#take('watches', 1);
    this.#giveBack('requests');
    this.#cancelDeadline?.();
    this.#dropBody();
  }

  /** Calls `late` unless the exchange has ended within that time; a later call replaces it. */
  limit(timeMs: number, late: () => void): void {
    this.#cancelDeadline?.();
    if (!this.#isEnded) this.#cancelDeadline = this.#owner.clock.after(timeMs, late);
  }

  /** Whether its peer has to take something before more is written. */
  get isFull(): boolean {
    return this.isOver || this.#transport.isFull;
  }

  /** Like `write`, to a peer that is not full, and without waiting. What is written is little, because nobody notices that part of it is taken. */
  writeNow(pieces: readonly Uint8Array[]): void {
    const { response } = this;
    if (pieces.length > 1) response.cork();
    for (const piece of pieces) response.write(piece, () => this.#partTaken(piece.length));
    if (pieces.length > 1) response.uncork();
    // Nobody waits here until some is taken, so this is asked when the time is up; whatever is written meanwhile begins it anew.
    if (this.#transport.isFull) this.#expectTaken(() => !this.#transport.isFull);
  }

  /** Resolves when it is its caller's turn to have a body or a page read, in a later turn of the event loop; also once it is over. */
  turn(): Promise<void> {
    return this.#owner.turn();
  }

  /** Writes pieces that room was taken for, and returns the room as they are taken. Resolves when more may be written. */
  async write(pieces: readonly Uint8Array[]): Promise<void> {
    if (this.isOver) return;
    if (this.isFull) await this.#drained();
    if (this.isOver) return;
    const { response } = this;
    if (pieces.length > 1) response.cork();
    for (const piece of pieces) {
      // Long ones in parts, to notice whether the peer takes any, and because the kernel takes megabytes at once, which costs everybody time.
      const isLong = piece.length > partBytesMax;
      for (let at = 0; at < piece.length; at += partBytesMax) {
        const part = isLong ? piece.subarray(at, at + partBytesMax) : piece;
        if (isLong) {
          if (pieces.length > 1) response.uncork();
          if (this.#transport.isFull) await this.#drained();
          await this.#owner.pace.turn(part.length);
          if (this.isOver) return;
          if (pieces.length > 1) response.cork();
        }
        response.write(part, () => this.#partTaken(part.length));
      }
    }
    if (pieces.length > 1) response.uncork();
    if (this.#transport.isFull) await this.#drained();
  }

  /** Ends the answer with what was written, and `last`, that room was taken for. */
  finish(last?: Uint8Array): void {
    if (!this.isOver) this.response.end(last);
    this.answered();
  }

  /** The answer has been handed over as a whole: now its reader has to take it. */
  answered(): void {
    this.#expectTaken(() => false);
  }

  /** Ends it at once, and its stream with it. */
  cut(): void {
    if (this.#isEnded) return;
    this.#transport.cut();
    this.end();
  }

  /** Called when nothing more can come or go. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDeadline?.();
    this.#cancelStall?.();
    this.room.close();
    for (const { limit, amount } of this.#taken.splice(0)) this.#owner.quota[limit].give(amount);
    for (const task of this.#endTasks) task();
    this.#endTasks.clear();
    this.#owner.ended(this);
  }

  #partTaken(bytes: number): void {
    this.#owner.partsTaken += 1;
    this.room.give(bytes);
  }

  #onTaken(): void {
    this.#owner.partsTaken += 1;
    this.room.clear();
    if (this.#isEnded) return;
    this.#dropBody();
    if (this.#transport.bodyIsIn) return;
    this.#cancelStall?.();
    this.#cancelStall = this.#owner.clock.after(dropMs, () => {
      this.#transport.endBody();
      this.end();
    });
  }

  /** Reads what is left of it. */
  #dropBody(): void {
    this.request.on('data', () => {});
    this.request.resume();
  }

  /** Its reader has some time to take what was written. */
  #expectTaken(isTaken: () => boolean): void {
    this.#cancelStall?.();
    if (this.#isEnded) return;
    const owner = this.#owner;
    const before = owner.partsTaken;
    this.#cancelStall = owner.clock.after(owner.sendTimeoutMs, () => {
      if (!isTaken()) owner.stalled(this, owner.partsTaken !== before);
    });
  }

  async #drained(): Promise<void> {
    this.#expectTaken(() => false);
    await new Promise<void>((resume) => {
      const leave = this.onEnd(resume);
      this.#transport.onceDrained(() => {
        leave();
        resume();
      });
    });
    this.#cancelStall?.();
  }

  #take(limit: LimitName, amount: number): void {
    if (this.#isEnded || amount === 0) return;
    if (!this.#owner.quota[limit].tryTake(amount)) throw this.#owner.refused(limit);
    this.#taken.push({ limit, amount });
  }

  #giveBack(limit: LimitName): void {
    const at = this.#taken.findIndex((taken) => taken.limit === limit);
    const [taken] = at < 0 ? [] : this.#taken.splice(at, 1);
    if (taken !== undefined) this.#owner.quota[limit].give(taken.amount);
  }
}
