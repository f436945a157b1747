import { readFileSync } from 'node:fs';

/**
 * How long a task takes on a shared machine, in milliseconds: its fastest round by the clock, or
 * the average processor time of a round, whichever is less. A short task fits between the work of
 * other processes; a long one never does.
 */
export function fastestMs(task: () => void, rounds: number): number {
  const before = processorMs();
  const took = Array.from({ length: rounds }, () => {
    const begun = performance.now();
    task();
    return performance.now() - begun;
  });
  return Math.min(...took, (processorMs() - before) / rounds);
}

/**
 * The fastest answer of these rounds, in milliseconds: other processes on the machine slow down the
 * rest.
 */
export async function fastestAnswerMs(ask: () => Promise<unknown>, rounds: number): Promise<number> {
  let shortest = Infinity;
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    await ask();
    shortest = Math.min(shortest, performance.now() - begun);
  }
  return shortest;
}

/**
 * Processor time of this thread, to 4 ms; the time of the clock where the kernel does not report
 * it.
 */
export function processorMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return performance.now();
  }
}
