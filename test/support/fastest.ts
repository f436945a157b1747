import { readFileSync } from 'node:fs';

/**
 * How long a task takes on a machine that others use too, in milliseconds: its fastest round by the clock, or what a round takes of
 * the processor on average, whichever is less. A short task fits between the others; a long one never does.
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

/** How long something that is waited for takes at least, in milliseconds: its fastest round, because other processes use the machine as well. */
export async function fastestAnswerMs(ask: () => Promise<unknown>, rounds: number): Promise<number> {
  let shortest = Infinity;
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    await ask();
    shortest = Math.min(shortest, performance.now() - begun);
  }
  return shortest;
}

/** What this thread has had of the processor, to 4 ms. Where the kernel does not tell, the time that has passed. */
export function processorMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return performance.now();
  }
}
