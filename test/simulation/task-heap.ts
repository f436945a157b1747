/**
 * Tasks by due time; of equal times, the task that was added first comes first.
 *
 * A binary heap. A cancelled task stays in place, empty, and is skipped. Once most of the heap is
 * empty it is rebuilt, so that timers which are nearly always cancelled, like timeouts, cost no
 * memory.
 */
export type Task = { readonly dueMs: number; readonly sequence: number; run: (() => void) | undefined };

const sweepMin = 1_024;

export class TaskHeap {
  #tasks: Task[] = [];
  #cancelled = 0;

  /** Without cancelled tasks. */
  get size(): number {
    return this.#tasks.length - this.#cancelled;
  }

  add(task: Task): void {
    this.#tasks.push(task);
    this.#rise(this.#tasks.length - 1);
  }

  cancel(task: Task): void {
    if (task.run === undefined) return;
    task.run = undefined;
    this.#cancelled += 1;
    if (this.#cancelled >= sweepMin && this.#cancelled * 2 > this.#tasks.length) this.#sweep();
  }

  /** Returns the first task that is not cancelled, and leaves it in the heap. */
  peek(): Task | undefined {
    for (;;) {
      const first = this.#tasks[0];
      if (first === undefined || first.run !== undefined) return first;
      this.#removeFirst();
      this.#cancelled -= 1;
    }
  }

  take(): Task | undefined {
    const first = this.peek();
    if (first !== undefined) this.#removeFirst();
    return first;
  }

  #removeFirst(): void {
    const last = this.#tasks.pop();
    if (last === undefined || this.#tasks.length === 0) return;
    this.#tasks[0] = last;
    this.#sink(0);
  }

  #sweep(): void {
    // A sorted array is a heap.
    this.#tasks = this.#tasks.filter(({ run }) => run !== undefined).toSorted((a, b) => (isBefore(a, b) ? -1 : 1));
    this.#cancelled = 0;
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#swapUnlessBefore(above, at)) return;
      at = above;
    }
  }

  #sink(from: number): void {
    let at = from;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const [one, other] = [this.#tasks[left], this.#tasks[right]];
      if (one === undefined) return;
      const smaller = other !== undefined && isBefore(other, one) ? right : left;
      if (!this.#swapUnlessBefore(at, smaller)) return;
      at = smaller;
    }
  }

  /** Returns whether it swapped them. */
  #swapUnlessBefore(above: number, below: number): boolean {
    const [upper, lower] = [this.#tasks[above], this.#tasks[below]];
    if (upper === undefined || lower === undefined || isBefore(upper, lower)) return false;
    this.#tasks[above] = lower;
    this.#tasks[below] = upper;
    return true;
  }
}

function isBefore(one: Task, other: Task): boolean {
  return one.dueMs === other.dueMs ? one.sequence < other.sequence : one.dueMs < other.dueMs;
}
