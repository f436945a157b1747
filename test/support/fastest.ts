/** How long a task takes on a machine that others use too: its fastest round, in milliseconds. */
export function fastestMs(task: () => void, rounds: number): number {
  const took = Array.from({ length: rounds }, () => {
    const begun = performance.now();
    task();
    return performance.now() - begun;
  });
  return Math.min(...took);
}
