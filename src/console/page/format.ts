/** Formats amounts for people. */
const msPerSecond = 1_000;
const units: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', msPerSecond],
];
const kibibyte = 1_024;

export function formatCount(count: number): string {
  return count.toLocaleString('en');
}

/** The largest unit and the next: `3d 4h`, `12s`, `8ms`. */
export function formatDuration(ms: number): string {
  const at = units.findIndex(([, unitMs]) => ms >= unitMs);
  if (at === -1) return `${Math.round(ms)}ms`;
  const [name, unitMs] = units[at]!;
  const whole = Math.floor(ms / unitMs);
  const next = units[at + 1];
  const rest = next === undefined ? 0 : Math.floor((ms - whole * unitMs) / next[1]);
  return rest === 0 ? `${whole}${name}` : `${whole}${name} ${rest}${next![0]}`;
}

export function formatBytes(bytes: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, at] = [bytes, 0];
  for (; value >= kibibyte && at < names.length - 1; at++) value /= kibibyte;
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${names[at]}`;
}

/** An unknown value is a dash. */
export function known<T>(value: T | null, format: (value: T) => string): string {
  return value === null ? '–' : format(value);
}
