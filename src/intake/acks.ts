/** Sends at most one ack in each turn of the event loop. An ack covers all lower numbers, too. */
import type { FrameOf } from '../frames/frame.js';

export class Acks {
  readonly #send: (ack: FrameOf<'ack'>) => void;
  readonly #turn: () => Promise<void>;
  #last: FrameOf<'ack'> | undefined;

  constructor(send: (ack: FrameOf<'ack'>) => void, turn: () => Promise<void>) {
    this.#send = send;
    this.#turn = turn;
  }

  add(ack: FrameOf<'ack'>): void {
    if (this.#last === undefined) void this.#turn().then(() => this.#acknowledge());
    this.#last = ack;
  }

  #acknowledge(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) this.#send(last);
  }
}
