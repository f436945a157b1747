/** One value of a Prometheus text, for a metric without labels; NaN when it is not there. */
export function metric(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}
