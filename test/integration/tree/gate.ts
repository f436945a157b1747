/**
 * A disk that commits nothing while the gate is shut; everything that waits is then committed
 * together.
 */
import { setImmediate } from 'node:timers';

export class Gate {
  #isShut = false;
  #tasks: (() => void)[] = [];

  readonly soon = (task: () => void): void => {
    if (this.#isShut) this.#tasks.push(task);
    else setImmediate(task);
  };

  shut(): void {
    this.#isShut = true;
  }

  open(): void {
    this.#isShut = false;
    for (const task of this.#tasks.splice(0)) setImmediate(task);
  }
}
