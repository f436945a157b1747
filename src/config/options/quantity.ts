/**
 * Durations, amounts of bytes, and booleans as Go writes them. Durations need a unit, because
 * readers disagree on what `--timeout 60` means.
 */

const durationUnitsMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1e3,
  m: 6e4,
  h: 3.6e6,
  d: 8.64e7,
};
const durationPart = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h|d)';
const durationPattern = new RegExp(`^(?:${durationPart})+$`);
const durationPartPattern = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)/gy;

/**
 * Parses Go's duration text (`100ms`, `1m30s`, `0`), and days, to whole milliseconds; undefined for
 * any other text.
 */
export function parseDurationMs(text: string): number | undefined {
  if (text === '0') return 0;
  if (!durationPattern.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(durationPartPattern)) totalMs += Number(amount) * durationUnitsMs[unit!]!;
  return Math.round(totalMs);
}

const byteUnits: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
const bytesPattern = /^(\d+(?:\.\d+)?) ?(B|kB|MB|GB|KiB|MiB|GiB|TiB)?$/;

/** Parses `64MiB`, `1.5GiB`, `3145728`; undefined if the text is no whole number of bytes. */
export function parseBytes(text: string): number | undefined {
  const match = bytesPattern.exec(text);
  if (match === null) return undefined;
  const bytes = Number(match[1]) * byteUnits[match[2] ?? '']!;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

const durationSteps = [
  ['d', 8.64e7],
  ['h', 3.6e6],
  ['m', 6e4],
  ['s', 1e3],
] as const;

/** The two largest units, `3d4h`, `2m5s`; milliseconds below a second. */
export function formatDuration(ms: number): string {
  const first = durationSteps.findIndex(([, unitMs]) => ms >= unitMs);
  if (first < 0) return `${Math.round(ms)}ms`;
  const [large, largeMs] = durationSteps[first]!;
  const next = durationSteps[first + 1];
  const whole = Math.floor(ms / largeMs);
  const rest = next === undefined ? 0 : Math.floor((ms % largeMs) / next[1]);
  return `${whole}${large}${rest === 0 ? '' : `${rest}${next![0]}`}`;
}

/** Formats with one decimal place from KiB on: `512 B`, `29.5 KiB`, `1.2 GiB`. */
export function formatBytes(bytes: number): string {
  const unit = ['TiB', 'GiB', 'MiB', 'KiB'].find((name) => bytes >= byteUnits[name]!);
  return unit === undefined ? `${bytes} B` : `${(bytes / byteUnits[unit]!).toFixed(1)} ${unit}`;
}

/** Go's strconv.ParseBool, by which pflag reads flags; undefined if the text is no boolean. */
export function parseBoolean(text: string): boolean | undefined {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true;
  return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text) ? false : undefined;
}
