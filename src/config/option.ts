/**
 * One thing that can be tuned, declared once: from it come the flag, the environment variable, the key in the file, the default,
 * the bounds, the help and the type of the setting. Every kind of value has bounds; there is no option without any.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { parseBytes, parseDurationMs } from './quantity.js';

export type Option<Value> = Readonly<{
  /** Without dashes. Where upstream's cache server has the same thing, upstream's name. */
  flag: string;
  /** Section and key in the configuration file. */
  yaml: string;
  /** As an operator would write it; `<root-directory>` stands for that setting. Undefined: the setting may be absent. */
  default: string | undefined;
  schema: z.ZodType<Value>;
  /** The word for its value in the help. */
  placeholder: string;
  /** What it takes, with its bounds, as the end of "must be …". */
  accepts: string;
  help: string;
}>;

/** The environment variable is made from the flag, so the two cannot drift apart. */
export function environmentName({ flag }: Pick<Option<unknown>, 'flag'>): string {
  return `STRATA_${flag.replaceAll('-', '_').toUpperCase()}`;
}

type Place = Readonly<{ flag: string; yaml: string; help: string }>;
type Bounds<Limit> = Readonly<{ default: string; min: Limit; max: Limit }>;

export function count({ min, max, ...rest }: Place & Bounds<number>): Option<number> {
  const accepts = `a whole number from ${min} to ${max}`;
  return {
    ...rest,
    placeholder: 'number',
    accepts,
    schema: bounded(accepts, min, max, (text) => (/^\d+$/.test(text) ? Number(text) : undefined)),
  };
}

export function bytes({ min, max, ...rest }: Place & Bounds<string>): Option<number> {
  const accepts = `an amount of bytes from ${min} to ${max}, such as 64MiB`;
  return { ...rest, placeholder: 'bytes', accepts, schema: bounded(accepts, parseBytes(min)!, parseBytes(max)!, parseBytes) };
}

/** The setting is in milliseconds, whatever unit the text has. */
export function duration({ min, max, ...rest }: Place & Bounds<string>): Option<number> {
  const accepts = `a duration from ${min} to ${max}, such as 250ms, 1m30s or 24h`;
  return {
    ...rest,
    placeholder: 'duration',
    accepts,
    schema: bounded(accepts, parseDurationMs(min)!, parseDurationMs(max)!, parseDurationMs),
  };
}

export function toggle(rest: Place & Readonly<{ default: 'true' | 'false' }>): Option<boolean> {
  const schema = texts.transform((text, context) =>
    text === 'true' || text === 'false' ? text === 'true' : complain(context, 'true or false'),
  );
  return { ...rest, placeholder: 'boolean', accepts: 'true or false', schema };
}

export function choice<const Word extends string>({
  words,
  ...rest
}: Place & Readonly<{ default: Word; words: readonly Word[] }>): Option<Word> {
  const accepts = words.join(' or ');
  const schema = texts.transform((text, context) => words.find((word) => word === text) ?? complain(context, accepts));
  return { ...rest, placeholder: words.join('|'), accepts, schema };
}

/** Empty means every interface, as upstream has it. */
export function address(rest: Place & Readonly<{ default: string }>): Option<string> {
  const accepts = 'an IP address';
  const schema = texts.transform((text, context) => (text === '' ? '0.0.0.0' : isIP(text) === 0 ? complain(context, accepts) : text));
  return { ...rest, placeholder: 'ip', accepts, schema };
}

const pathCharactersMax = 4096;
const acceptsPath = `a path of at most ${pathCharactersMax} characters`;

/** Empty means the working directory: kcp-operator passes `--root-directory=`. */
export function directory(rest: Place & Readonly<{ default: string }>): Option<string> {
  return { ...rest, placeholder: 'directory', accepts: acceptsPath, schema: path.transform((text) => (text === '' ? '.' : text)) };
}

/** Absent by default; empty means absent as well, so that a flag can take back what a file says. */
export function file(rest: Place): Option<string | undefined> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    accepts: acceptsPath,
    schema: path.transform((text) => (text === '' ? undefined : text)),
  };
}

/** Flags and variables are texts; YAML has numbers and booleans of its own, whose text means the same. */
const texts = z.union([z.string(), z.number().transform(String), z.boolean().transform(String)], { error: 'must be a single value' });
const path = texts.refine((text) => text.length <= pathCharactersMax && !text.includes('\0'), { error: `must be ${acceptsPath}` });

function bounded(accepts: string, min: number, max: number, parse: (text: string) => number | undefined): z.ZodType<number> {
  return texts.transform((text, context) => {
    const value = parse(text);
    return value === undefined || value < min || value > max ? complain(context, accepts) : value;
  });
}

function complain(context: z.RefinementCtx, accepts: string): never {
  context.addIssue({ code: 'custom', message: `must be ${accepts}` });
  return z.NEVER;
}
