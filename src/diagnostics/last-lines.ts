/** The last warnings and errors of a log, and what was refused, for people who look at the server and not at its log. Bounded: linesMax, and so many characters of each. */
import type { Clock } from '../domain/ports.js';
import type { Log, LogFields } from './log.js';

export type LastLine = Readonly<{ agoMs: number; level: 'info' | 'warn' | 'error'; event: string; fields: string }>;

type Kept = Omit<LastLine, 'agoMs'> & Readonly<{ atMs: number }>;

const linesMax = 50;
const charactersMax = 512;
/** At level info, because clients that compete for an object cause it every day. */
const kept: readonly string[] = ['request.refused'];

export class LastLines {
  readonly #clock: Clock;
  readonly #lines: Kept[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same log, whose lines are seen here too. */
  of(log: Log, common: LogFields = {}): Log {
    const see = (level: LastLine['level'], event: string, fields: LogFields = {}): void => {
      log[level](event, fields);
      if (level !== 'info' || kept.includes(event)) this.#keep(level, event, { ...common, ...fields });
    };
    return {
      debug: (event, fields) => log.debug(event, fields),
      info: (event, fields) => see('info', event, fields),
      warn: (event, fields) => see('warn', event, fields),
      error: (event, fields) => see('error', event, fields),
      child: (fields) => this.of(log.child(fields), { ...common, ...fields }),
    };
  }

  /** The newest first. */
  read(): readonly LastLine[] {
    const nowMs = this.#clock.now();
    return this.#lines.map(({ atMs, ...line }) => ({ ...line, agoMs: nowMs - atMs })).toReversed();
  }

  #keep(level: LastLine['level'], event: string, fields: LogFields): void {
    const texts = Object.entries(fields).map(([name, value]) => `${name}=${formatValue(value)}`);
    this.#lines.push({ atMs: this.#clock.now(), level, event, fields: texts.join(' ').slice(0, charactersMax) });
    if (this.#lines.length > linesMax) this.#lines.shift();
  }
}

/** Of an error only its message: a stack is for the log. */
function formatValue(value: unknown): string {
  if (value instanceof Error) return value.message;
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
}
