/** The parts that a server closes when it stops. */
import type { Subscription } from '../domain/ports.js';

type Closeable = Readonly<{ close: () => void | Promise<void> }>;

export class Closers {
  readonly #opened: (Closeable | Subscription)[] = [];

  /** Registers a part for `close`, and returns it. */
  add<Opened extends Closeable | Subscription>(opened: Opened): Opened {
    this.#opened.push(opened);
    return opened;
  }

  /** Closes all parts at the same time, beginning with the last. Resolves when all are closed. */
  async close(): Promise<void> {
    await Promise.all(this.#opened.toReversed().map((each) => ('close' in each ? each.close() : each.cancel())));
  }
}
