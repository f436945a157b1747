/** The value of a metric without labels in a Prometheus text; NaN if it is missing. */
export function metric(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}
