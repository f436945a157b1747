/**
 * The last warnings, errors and refusals of a log, for people who read the console and not the log.
 *
 * Bounds: linesMax, charactersMax.
 */
import type { Clock } from '../domain/ports.js';
import type { Log, LogFields } from './log.js';

export type LastLine = Readonly<{ agoMs: number; level: 'info' | 'warn' | 'error'; event: string; fields: string }>;

type Kept = Omit<LastLine, 'agoMs'> & Readonly<{ atMs: number; order: number }>;

const charactersMax = 512;
/** Each kind has its own bound, so that refusals to strangers displace nothing else. */
const linesMax = { forbidden: 20, refused: 20, other: 50 } as const;
type Kind = keyof typeof linesMax;
const kinds: Readonly<Record<string, Kind>> = {
  'request.forbidden': 'forbidden',
  'request.refused': 'refused',
  'console.refused': 'forbidden',
};

export class LastLines {
  readonly #clock: Clock;
  #order = 0;
  readonly #lines: Readonly<Record<Kind, Kept[]>> = { forbidden: [], refused: [], other: [] };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A log that also records its lines here. */
  wrap(log: Log, common: LogFields = {}): Log {
    const record = (level: LastLine['level'], event: string, fields: LogFields = {}): void => {
      log[level](event, fields);
      // Refusals are recorded too. They have the level info, because competing clients are refused
      // every day.
      if (level !== 'info' || kinds[event] !== undefined) this.#keep(level, event, { ...common, ...fields });
    };
    return {
      debug: (event, fields) => log.debug(event, fields),
      info: (event, fields) => record('info', event, fields),
      warn: (event, fields) => record('warn', event, fields),
      error: (event, fields) => record('error', event, fields),
      child: (fields) => this.wrap(log.child(fields), { ...common, ...fields }),
    };
  }

  /** The newest first. */
  read(): readonly LastLine[] {
    const nowMs = this.#clock.now();
    const all = Object.values(this.#lines).flat();
    return all.toSorted((a, b) => b.order - a.order).map(({ atMs, order: _, ...line }) => ({ ...line, agoMs: nowMs - atMs }));
  }

  #keep(level: LastLine['level'], event: string, fields: LogFields): void {
    const kind = kinds[event] ?? 'other';
    const lines = this.#lines[kind];
    this.#order += 1;
    lines.push({ atMs: this.#clock.now(), order: this.#order, level, event, fields: textOf(fields) });
    if (lines.length > linesMax[kind]) lines.shift();
  }
}

/** Copies the text, because a slice would keep the whole text in memory. */
function textOf(fields: LogFields): string {
  const texts = Object.entries(fields).map(([name, value]) => `${name}=${formatValue(value).slice(0, charactersMax)}`);
  return Buffer.from(texts.join(' ').slice(0, charactersMax)).toString();
}

/** Only the message of an error. Its stack is in the log. */
function formatValue(value: unknown): string {
  if (value instanceof Error) return value.message;
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // This value cannot be formatted.
    return '…';
  }
}
