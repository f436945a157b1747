/**
 * Events with fields. The name of an event is dotted, `shard.connected`, and never built from
 * values. Values are fields.
 *
 * Lines are written to the stream without a worker thread or a buffer, because the last line before
 * a crash matters most. That line is written when `error` returns: files and pipes are synchronous
 * in Node on Linux.
 */
import { pino, stdSerializers, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Clock } from '../domain/ports.js';

export type LogFields = Readonly<Record<string, unknown>>;

/** A field named `error` is written with its stack and its causes. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** The same log, with these fields on every line. */
  child(fields: LogFields): Log;
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

export const logFormats = ['json', 'pretty'] as const;
export type LogFormat = (typeof logFormats)[number];

export type LogOptions = Readonly<{ level: LogLevel; format: LogFormat }>;

export function createLog({ clock, stream }: { clock: Clock; stream: NodeJS.WritableStream }, { level, format }: LogOptions): Log {
  const destination =
    format === 'json'
      ? stream
      : pretty({
          destination: stream,
          sync: true,
          colorize: 'isTTY' in stream && stream.isTTY === true,
          messageKey: 'event',
          translateTime: 'SYS:HH:MM:ss.l',
          singleLine: true,
        });
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: () => `,"time":"${new Date(clock.wallMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: withRoundNumbers },
      serializers: { error: stdSerializers.errWithCause },
    },
    destination,
  );
  return wrap(logger);
}

/** Rounds to one decimal place: more digits of a duration or a rate are noise. */
function withRoundNumbers(fields: Record<string, unknown>): Record<string, unknown> {
  const isLong = (value: unknown): value is number => typeof value === 'number' && !Number.isInteger(value);
  const rounded = Object.entries(fields).map(([name, value]) => [name, isLong(value) ? Math.round(value * 10) / 10 : value]);
  return Object.fromEntries(rounded);
}

function wrap(logger: Logger): Log {
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
    child: (fields) => wrap(logger.child(fields)),
  };
}
