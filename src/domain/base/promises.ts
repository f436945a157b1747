import type { Clock } from '../ports.js';

export type Deferred<T> = Readonly<{ promise: Promise<T>; resolve: (value: T) => void; reject: (reason: unknown) => void }>;

/** `Promise.withResolvers`, which Node 20 does not have. */
export function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] | undefined;
  let reject: Deferred<T>['reject'] | undefined;
  const promise = new Promise<T>((onValue, onReason) => {
    resolve = onValue;
    reject = onReason;
  });
  if (resolve === undefined || reject === undefined) throw new Error('a promise runs its executor at once');
  return { promise, resolve, reject };
}

/**
 * Resolves after `delayMs`, or as soon as `signal` is aborted; leaves neither a timer nor a
 * listener. A pause of 0 also waits for the clock, so that a loop with a jitter of 0 still yields
 * to the event loop.
 */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal?.addEventListener('abort', end);
  });
}

/** Calls `task` every `intervalMs`, until the returned function is called. */
export function every(clock: Pick<Clock, 'after'>, intervalMs: number, task: () => void): () => void {
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(intervalMs, () => {
      wait();
      task();
    });
  };
  wait();
  return () => cancel();
}

/**
 * Resolves like `work`, or rejects with the signal's reason once it is aborted. Does not cancel the
 * work; leaves no listener.
 */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
