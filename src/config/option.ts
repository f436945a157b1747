/**
 * One option, declared once: from the declaration come the flag, the environment variable, the key in the file, the default,
 * the bounds, the help and the type of the setting. Every kind of value has bounds; there is no option without any.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { parseBytes, parseDurationMs } from './quantity.js';

/** What every option has. An option of a command, which runs once, has no more: it needs no key in a file. */
export type CommandOption<Value> = Readonly<{
  /** Without dashes. Upstream's name where upstream's cache server has the same option. */
  flag: string;
  /** As an operator would write it; `<root-directory>` stands for that setting. Undefined: it may be absent, or must be given. */
  default: string | undefined;
  schema: z.ZodType<Value>;
  /** The word for its value in the help; '' for a flag that stands alone. */
  placeholder: string;
  /** The values it accepts, with bounds, as the end of "must be …". */
  accepts: string;
  help: string;
  /** It may be given several times: its text is then all values with commas between. */
  repeatable?: boolean;
}>;

/** One of the server's. */
export type Option<Value> = CommandOption<Value> &
  Readonly<{
    /** Section and key in the configuration file. */
    yaml: string;
  }>;

/** The environment variable is made from the flag, so the two cannot drift apart. */
export function environmentName({ flag }: Pick<CommandOption<unknown>, 'flag'>): string {
  return `STRATA_${flag.replaceAll('-', '_').toUpperCase()}`;
}

type Place = Readonly<{ flag: string; help: string }>;
type Kind<Value> = Pick<CommandOption<Value>, 'placeholder' | 'accepts' | 'schema'>;
type Bounds<Limit> = Readonly<{ default: string; min: Limit; max: Limit }>;

export function count<P extends Place & Bounds<number>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `a whole number from ${min} to ${max}`;
  return {
    ...rest,
    placeholder: 'number',
    accepts,
    schema: bounded(accepts, min, max, (text) => (/^\d+$/.test(text) ? Number(text) : undefined)),
  };
}

export function bytes<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `an amount of bytes from ${min} to ${max}, such as 64MiB`;
  return { ...rest, placeholder: 'bytes', accepts, schema: bounded(accepts, parseBytes(min)!, parseBytes(max)!, parseBytes) };
}

/** The setting is in milliseconds, whatever unit the text has. */
export function duration<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `a duration from ${min} to ${max}, such as 250ms, 1m30s or 24h`;
  return {
    ...rest,
    placeholder: 'duration',
    accepts,
    schema: bounded(accepts, parseDurationMs(min)!, parseDurationMs(max)!, parseDurationMs),
  };
}

export function toggle<P extends Place & Readonly<{ default: 'true' | 'false' }>>(rest: P): P & Kind<boolean> {
  const schema = texts.transform((text, context) =>
    text === 'true' || text === 'false' ? text === 'true' : complain(context, 'true or false'),
  );
  return { ...rest, placeholder: 'boolean', accepts: 'true or false', schema };
}

export function choice<const Word extends string, P extends Place & Readonly<{ default: Word; words: readonly Word[] }>>({
  words,
  ...rest
}: P & Readonly<{ words: readonly Word[] }>): Omit<P, 'words'> & Kind<Word> {
  const accepts = words.join(' or ');
  const schema = texts.transform((text, context) => words.find((word) => word === text) ?? complain(context, accepts));
  return { ...rest, placeholder: words.join('|'), accepts, schema };
}

/** Texts separated by commas; empty means none. */
export function list<P extends Place & Readonly<{ default: string; pattern: RegExp; accepts: string }>>({
  pattern,
  accepts,
  ...rest
}: P): Omit<P, 'pattern' | 'accepts'> & Kind<readonly string[]> {
  const schema = texts.transform((text, context) => {
    const found = text.split(',').filter((each) => each !== '');
    return found.every((each) => pattern.test(each)) ? found : complain(context, accepts);
  });
  return { ...rest, placeholder: 'list', accepts, schema };
}

/** None by default. Texts separated by commas, given several times, or a list of them in the file; empty means none. */
export function several<Value, P extends Place & Readonly<{ placeholder: string; accepts: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => readonly Value[] | undefined }>): Omit<P, 'parse'> &
  Readonly<{ default: undefined; repeatable: true }> &
  Kind<readonly Value[]> {
  const joined = z.union([texts, z.array(z.string()).transform((members) => members.join(','))], { error: mustBe(rest.accepts).error });
  const schema = joined.transform((text, context) => (text === '' ? [] : (parse(text) ?? complain(context, rest.accepts))));
  return { ...rest, default: undefined, repeatable: true, schema };
}

/** Empty means every interface, as upstream has it. */
export function address<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  const accepts = 'an IP address';
  const schema = texts.transform((text, context) => (text === '' ? '0.0.0.0' : isIP(text) === 0 ? complain(context, accepts) : text));
  return { ...rest, placeholder: 'ip', accepts, schema };
}

const pathCharactersMax = 4096;
const acceptsPath = `a path of at most ${pathCharactersMax} characters`;

/** Empty means the working directory: kcp-operator passes `--root-directory=`. */
export function directory<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  return { ...rest, placeholder: 'directory', accepts: acceptsPath, schema: path.transform((text) => (text === '' ? '.' : text)) };
}

/** Absent by default; empty means absent as well, so that a flag can take back what a file says. */
export function file<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string | undefined> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    accepts: acceptsPath,
    schema: path.transform((text) => (text === '' ? undefined : text)),
  };
}

/** A file that the command cannot do without. */
export function neededFile<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    accepts: acceptsPath,
    schema: path.refine((text) => text !== '', mustBe(acceptsPath)),
  };
}

/** A flag that stands alone; as a variable, true or false. */
export function bare<P extends Place>(rest: P): P & Readonly<{ default: 'false' }> & Kind<boolean> {
  return { ...toggle({ ...rest, default: 'false' }), placeholder: '' };
}

/** Absent by default; empty means absent as well. */
export function name<P extends Place & Readonly<{ accepts: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => string | undefined }>): Omit<P, 'parse'> &
  Readonly<{ default: undefined }> &
  Kind<string | undefined> {
  const schema = texts.transform((text, context) => (text === '' ? undefined : (parse(text) ?? complain(context, rest.accepts))));
  return { ...rest, default: undefined, placeholder: 'name', schema };
}

/** Any other value that can be parsed. It may be absent exactly when '' can be parsed. */
export function parsedBy<Value, P extends Place & Readonly<{ placeholder: string; accepts: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => Value | undefined }>): Omit<P, 'parse'> & Readonly<{ default: undefined }> & Kind<Value> {
  const schema = texts.transform((text, context) => parse(text) ?? complain(context, rest.accepts));
  return { ...rest, default: undefined, schema };
}

/** Flags and variables are texts; YAML has numbers and booleans of its own, whose text means the same. */
const texts = z.union([z.string(), z.number().transform(String), z.boolean().transform(String)], { error: 'must be a single value' });
const path = texts.refine((text) => text.length <= pathCharactersMax && !text.includes('\0'), mustBe(acceptsPath));

function bounded(accepts: string, min: number, max: number, parse: (text: string) => number | undefined): z.ZodType<number> {
  return texts.transform((text, context) => {
    const value = parse(text);
    return value === undefined || value < min || value > max ? complain(context, accepts) : value;
  });
}

function complain(context: z.RefinementCtx, accepts: string): never {
  context.addIssue({ code: 'custom', message: mustBe(accepts).error });
  return z.NEVER;
}

function mustBe(accepts: string): { error: string } {
  return { error: `must be ${accepts}` };
}
