/**
 * One request and its answer, as one thing with one end.
 *
 *   admitted ──▶ body ──▶ answer, or watch ──▶ all of it taken ──▶ rest of the body dropped ──▶ ended
 *      └───────────┴────────────┴── time is up, the reader stopped, the connection is gone ────▶ ended
 *
 * X1 It holds its slot, its deadline and its room in memory until the last byte was taken or its stream is destroyed, and gives back all of them
 *    at its end, whatever Node emits.
 * X2 It ends once. Nobody who waits for it waits on.
 * X3 An answer is sent whole before what is left of the body is given up: at most `dropMs` of it is read and dropped.
 * X4 Who takes nothing of what is sent for `sendTimeoutMs` is cut: the exchange, or the connection, where nothing moves and others wait for room.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Budget } from '../domain/budget.js';
import type { Caller } from '../domain/caller.js';
import type { Clock } from '../domain/ports.js';
import type { Room } from '../domain/room.js';
import type { LimitName, Quota } from './quotas.js';
import { transportOf, type Transport } from './transport.js';

/** How long the rest of a body that nobody wants may take, once it is answered. */
const dropMs = 1_000;

export type ExchangeParts = Readonly<{
  clock: Clock;
  quota: Quota;
  /** Of the connection. */
  bufferedBytes: Budget;
  /** Who is asking by now. */
  callerNow: () => Caller;
  /** Until when the caller's certificate is good; undefined without one. */
  validUntilMs: number | undefined;
  /** What to throw when a limit is reached. */
  refused: (limit: LimitName) => Error;
  sendTimeoutMs: number;
  /** How many pieces the peer has taken on the whole connection so far. */
  progress: { taken: number };
  /** The peer has taken nothing of it for `sendTimeoutMs`; whether it took anything else meanwhile. */
  stalled: (exchange: Exchange, anythingTaken: boolean) => void;
  /** Called once, at its end. */
  ended: (exchange: Exchange) => void;
}>;

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What is in memory for it: its body, and what of its answer has not been taken. */
  readonly room: Room;
  readonly #parts: ExchangeParts;
  readonly #transport: Transport;
  readonly #endTasks = new Set<() => void>();
  readonly #bufferedBytes: Budget;
  /** What it has taken, to be given back. */
  readonly #taken: { readonly budget: Budget; readonly amount: number }[] = [];
  #roomBytes = 0;
  #waiting = 0;
  #isEnded = false;
  #cancelDeadline = (): void => {};
  #cancelStall = (): void => {};

  constructor(request: IncomingMessage, response: ServerResponse, parts: ExchangeParts) {
    this.request = request;
    this.response = response;
    this.#parts = parts;
    this.#bufferedBytes = parts.bufferedBytes;
    this.#transport = transportOf(request, response);
    this.room = this.#makeRoom();
    this.#transport.listen({ taken: () => this.#onTaken(), gone: () => this.end() });
  }

  get caller(): Caller {
    return this.#parts.callerNow();
  }

  get validUntilMs(): number | undefined {
    return this.#parts.validUntilMs;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether its peer went away before it was answered. */
  get wasTakenBack(): boolean {
    return this.#isEnded && !this.response.headersSent;
  }

  /** Whether it waits for what others hold in memory. */
  get waitsForRoom(): boolean {
    return this.#waiting > 0;
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

  /** Takes a request's slot. Throws Refused(429). */
  admit(): void {
    this.#take('requests', 1);
  }

  /** Goes on as a watch: not as a request among others, and with no deadline but its own. Throws Refused(429). */
  becomeWatch(selectorBytes: number): void {
    this.#take('selectorBytes', selectorBytes);
    this.#take('watches', 1);
    this.#giveBack('requests');
    this.#cancelDeadline();
  }

  /** Calls `late` unless the exchange has ended within that time; a later call replaces it. */
  limit(timeMs: number, late: () => void): void {
    this.#cancelDeadline();
    if (!this.#isEnded) this.#cancelDeadline = this.#parts.clock.after(timeMs, late);
  }

  /** Writes pieces that room was taken for, as one, and gives the room back when they are taken. Resolves when more may be written. */
  async write(pieces: readonly Uint8Array[]): Promise<void> {
    if (this.isOver || pieces.length === 0) return;
    const { response } = this;
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const last = pieces.length - 1;
    if (last > 0) response.cork();
    pieces.forEach((piece, i) => void (i === last ? response.write(piece, () => this.#pieceTaken(bytes)) : response.write(piece)));
    if (last > 0) response.uncork();
    if (this.#transport.isFull) await this.#drained();
  }

  /** Ends the answer with what was written. */
  finish(): void {
    if (!this.isOver) this.response.end();
    this.answered();
  }

  /** The answer has been handed over as a whole: now its reader has to take it. */
  answered(): void {
    this.#cancelStall();
    if (this.#isEnded) return;
    const { clock, progress, sendTimeoutMs, stalled } = this.#parts;
    const { taken } = progress;
    this.#cancelStall = clock.after(sendTimeoutMs, () => stalled(this, progress.taken !== taken));
  }

  /** Ends it at once, and its stream with it. */
  cut(): void {
    if (this.#isEnded) return;
    this.#transport.cut();
    this.end();
  }

  /** Called by whoever sees that nothing more can come or go. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDeadline();
    this.#cancelStall();
    this.#giveRoom(this.#roomBytes);
    for (const { budget, amount } of this.#taken.splice(0)) budget.give(amount);
    for (const task of this.#endTasks) task();
    this.#endTasks.clear();
    this.#parts.ended(this);
  }

  #pieceTaken(bytes: number): void {
    this.#parts.progress.taken += 1;
    this.#giveRoom(bytes);
  }

  #onTaken(): void {
    this.#pieceTaken(this.#roomBytes);
    if (this.#isEnded || this.#transport.bodyIsIn) return;
    this.#cancelStall();
    this.#transport.dropBody();
    this.#cancelStall = this.#parts.clock.after(dropMs, () => {
      this.#transport.endBody();
      this.end();
    });
  }

  async #drained(): Promise<void> {
    this.answered();
    await new Promise<void>((resume) => {
      const leave = this.onEnd(resume);
      this.#transport.onceDrained(() => {
        leave();
        resume();
      });
    });
    this.#cancelStall();
  }

  #take(name: LimitName, amount: number): void {
    const budget = this.#parts.quota[name];
    if (this.#isEnded || amount === 0) return;
    if (!budget.tryTake(amount)) throw this.#parts.refused(name);
    this.#taken.push({ budget, amount });
  }

  #giveBack(name: LimitName): void {
    const at = this.#taken.findIndex(({ budget }) => budget === this.#parts.quota[name]);
    const [taken] = at < 0 ? [] : this.#taken.splice(at, 1);
    taken?.budget.give(taken.amount);
  }

  #giveRoom(bytes: number): void {
    const given = Math.min(bytes, this.#roomBytes);
    if (given === 0) return;
    this.#roomBytes -= given;
    this.#bufferedBytes.give(given);
  }

  #makeRoom(): Room {
    const budget = this.#bufferedBytes;
    const note = (bytes: number): void => void (this.#roomBytes += bytes);
    const wait = (bytes: number): Promise<boolean> =>
      new Promise((resolve) => {
        const leave = this.onEnd(() => {
          giveUp();
          resolve(false);
        });
        const giveUp = budget.take(bytes, () => {
          leave();
          note(bytes);
          resolve(true);
        });
      });
    const add = (bytes: number): void => {
      if (this.#isEnded) return;
      budget.add(bytes);
      note(bytes);
    };
    return {
      tryTake: (bytes) => {
        const isTaken = !this.#isEnded && budget.tryTake(bytes);
        if (isTaken) note(bytes);
        return isTaken;
      },
      take: async (bytes) => {
        if (this.#isEnded) return false;
        this.#waiting += 1;
        const isTaken = await wait(bytes);
        this.#waiting -= 1;
        return isTaken;
      },
      add,
      give: (bytes) => this.#giveRoom(bytes),
      settle: (bytes) => {
        const surplus = this.#roomBytes - bytes;
        if (surplus > 0) this.#giveRoom(surplus);
        else add(-surplus);
      },
    };
  }
}
