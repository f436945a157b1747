/**
 * One request and its answer, with a single end for both.
 *
 *  admitted ─▶ body ─▶ answer, or watch ─▶ all of it taken ─▶ rest of the body dropped ─▶ ended
 *     └──────────┴───────────┴─ time is up, the reader stopped, the connection is gone ────▶ ended
 *
 * X1 An exchange keeps its slot, its deadline and its memory until the peer has received the last
 *    byte or the stream is destroyed. It releases all three at its end, whatever Node emits.
 * X2 An exchange ends once, and then releases everybody who waits for it.
 * X3 The rest of the body is dropped only after the peer has received the whole answer. At most
 *    `dropMs` of it is read.
 * X4 A reader that receives nothing for `sendTimeoutMs` is cut off. That ends the exchange, or the
 *    whole connection if the peer receives nothing else and other exchanges wait for memory.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Budget } from '../domain/base/budget.js';
import type { Caller } from '../domain/caller.js';
import type { Pace } from '../domain/base/pace.js';
import type { Clock } from '../domain/ports.js';
import type { MemoryReservation } from '../domain/base/memory-reservation.js';
import { ExchangeMemory } from './exchange-memory.js';
import type { LimitName, Quota } from './quotas.js';
import { headerBytesOf } from './session-settings.js';
import { transportOf, type Transport } from './transport.js';

/** How much is written at a time. */
const partBytesMax = 256 * 1024;
/** How many bytes of headers the cost of a watch includes. */
const watchBytes = 4 * 1024;
/** How long the rest of an unwanted body is read after the answer. */
const dropMs = 1_000;

export interface ExchangeOwner {
  readonly clock: Clock;
  readonly quota: Quota;
  readonly bufferedBytes: Budget;
  readonly sendTimeoutMs: number;
  readonly pace: Pick<Pace, 'turn'>;
  /** The caller is anonymous once its certificate has expired. */
  readonly callerNow: Caller;
  /** When the caller's certificate expires; undefined without one. */
  readonly validUntilMs: number | undefined;
  /** How many parts of all the connection's exchanges the peer has received. */
  partsDelivered: number;
  /**
   * Resolves in a later turn of the event loop, when the server may read a body or a page for the
   * caller.
   */
  turn(): Promise<void>;
  refused(limit: LimitName): Error;
  /**
   * Called if the peer received nothing of the exchange for `sendTimeoutMs`. `anythingTaken`:
   * whether it received anything of other exchanges meanwhile.
   */
  stalled(exchange: Exchange, anythingTaken: boolean): void;
  ended(exchange: Exchange): void;
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Memory for the body, and for the part of the answer that the peer has not received. */
  readonly memory: ExchangeMemory;
  readonly #owner: ExchangeOwner;
  readonly #transport: Transport;
  readonly #endTasks = new Set<() => void>();
  /** The exchange's share of each limit, released at its end. */
  readonly #acquired: { limit: LimitName; amount: number }[] = [];
  #hasBegun = false;
  #isEnded = false;
  #cancelDeadline: (() => void) | undefined;
  #cancelStall: (() => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, owner: ExchangeOwner) {
    this.request = request;
    this.response = response;
    this.#owner = owner;
    this.memory = new ExchangeMemory(owner.bufferedBytes, () => owner.turn());
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

  /** Whether the peer cancelled the exchange before its turn. */
  get wasCancelled(): boolean {
    return this.#isEnded && !this.#hasBegun;
  }

  /** Called when it is the exchange's turn to be answered. */
  begin(): void {
    this.#hasBegun = true;
  }

  /** Whether nothing more may be written: the exchange has ended, or its answer is complete. */
  get isOver(): boolean {
    return this.#isEnded || this.response.writableEnded;
  }

  /**
   * Runs the task when the exchange ends, or at once if it has ended. The returned function removes
   * the task.
   */
  onEnd(task: () => void): () => void {
    if (this.#isEnded) {
      task();
      return () => {};
    }
    this.#endTasks.add(task);
    return () => void this.#endTasks.delete(task);
  }

  /** Memory for the bytes of a front door's backend, until the peer receives them. */
  get unread(): Pick<MemoryReservation, 'tryReserve' | 'release'> {
    const { unreadBytes } = this.#owner.quota;
    const tryReserve = (bytes: number): boolean => {
      const fits = unreadBytes.tryReserve(bytes);
      if (!fits) this.refused('unreadBytes');
      return fits;
    };
    return { tryReserve, release: (bytes) => unreadBytes.release(bytes) };
  }

  /** Counts and logs that a limit is reached; returns the error to throw. */
  refused(limit: LimitName): Error {
    return this.#owner.refused(limit);
  }

  /** Takes a request's slot. Throws Refused(429). */
  admit(): void {
    this.#acquire('requests', 1);
  }

  /**
   * Turns the exchange into a watch, which counts as one and has no request deadline. Headers
   * beyond `watchBytes` count as buffered until the end. A body is dropped. Throws Refused(429).
   */
  becomeWatch(selectorBytes: number): void {
    this.#acquire('selectorBytes', selectorBytes);
    this.#acquire('bufferedBytes', Math.max(0, headerBytesOf(this.request) - watchBytes));
    this.#acquire('watches', 1);
    this.#release('requests');
    this.#cancelDeadline?.();
    this.#dropBody();
  }

  /**
   * Calls `late` unless the exchange ends within that time. A later call replaces an earlier one.
   */
  limit(timeMs: number, late: () => void): void {
    this.#cancelDeadline?.();
    if (!this.#isEnded) this.#cancelDeadline = this.#owner.clock.after(timeMs, late);
  }

  /**
   * Whether writing must wait until the peer receives something. Also true if the exchange is over.
   */
  get isFull(): boolean {
    return this.isOver || this.#transport.isFull;
  }

  /**
   * Like `write`, but without waiting; must not be called while `isFull`. The pieces should be
   * short, because a stall is not noticed while a part is on its way.
   */
  writeNow(pieces: readonly Uint8Array[]): void {
    const { response } = this;
    if (pieces.length > 1) response.cork();
    for (const piece of pieces) response.write(piece, () => this.#partTaken(piece.length));
    if (pieces.length > 1) response.uncork();
    // Nothing waits here for the peer, so the timer checks whether the stream is still full. Each
    // write restarts the timer.
    if (this.#transport.isFull) this.#expectTaken(() => !this.#transport.isFull);
  }

  /**
   * Resolves in a later turn of the event loop, when the server may read a body or a page for the
   * caller. The exchange may be over by then.
   */
  turn(): Promise<void> {
    return this.#owner.turn();
  }

  /**
   * Writes pieces, and releases their reserved memory as the peer receives them. Resolves when more
   * may be written.
   */
  async write(pieces: readonly Uint8Array[]): Promise<void> {
    if (this.isOver) return;
    if (this.isFull) await this.#drained();
    if (this.isOver) return;
    const { response } = this;
    if (pieces.length > 1) response.cork();
    for (const piece of pieces) {
      // Long pieces are written in parts, so that a stalled peer is detected. The kernel would also
      // accept megabytes at once, which would delay others.
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

  /** Ends the answer. `last`: a last piece, for which memory is reserved. */
  finish(last?: Uint8Array): void {
    if (!this.isOver) this.response.end(last);
    this.answered();
  }

  /** Called when the whole answer is written: starts the peer's time to receive it. */
  answered(): void {
    this.#expectTaken(() => false);
  }

  /** Ends the exchange and its stream at once. */
  cut(): void {
    if (this.#isEnded) return;
    this.#transport.cut();
    this.end();
  }

  /** Called when nothing more can be sent or received. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDeadline?.();
    this.#cancelStall?.();
    this.memory.close();
    for (const { limit, amount } of this.#acquired.splice(0)) this.#owner.quota[limit].release(amount);
    for (const task of this.#endTasks) task();
    this.#endTasks.clear();
    this.#owner.ended(this);
  }

  #partTaken(bytes: number): void {
    this.#owner.partsDelivered += 1;
    this.memory.release(bytes);
  }

  #onTaken(): void {
    this.#owner.partsDelivered += 1;
    this.memory.clear();
    if (this.#isEnded) return;
    this.#dropBody();
    if (this.#transport.bodyIsIn) return;
    this.#cancelStall?.();
    this.#cancelStall = this.#owner.clock.after(dropMs, () => {
      this.#transport.endBody();
      this.end();
    });
  }

  #dropBody(): void {
    this.request.on('data', () => {});
    this.request.resume();
  }

  /** Starts the peer's time to receive the written bytes. */
  #expectTaken(isTaken: () => boolean): void {
    this.#cancelStall?.();
    if (this.#isEnded) return;
    const owner = this.#owner;
    const before = owner.partsDelivered;
    this.#cancelStall = owner.clock.after(owner.sendTimeoutMs, () => {
      if (!isTaken()) owner.stalled(this, owner.partsDelivered !== before);
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

  #acquire(limit: LimitName, amount: number): void {
    if (this.#isEnded || amount === 0) return;
    if (!this.#owner.quota[limit].tryReserve(amount)) throw this.#owner.refused(limit);
    this.#acquired.push({ limit, amount });
  }

  #release(limit: LimitName): void {
    const at = this.#acquired.findIndex((taken) => taken.limit === limit);
    const [taken] = at < 0 ? [] : this.#acquired.splice(at, 1);
    if (taken !== undefined) this.#owner.quota[limit].release(taken.amount);
  }
}
