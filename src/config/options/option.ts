/**
 * One option, declared once. The declaration gives the flag, the environment variable, the key in
 * the file, the default, the bounds, the help and the type of the setting. Every kind of value has
 * bounds.
 */
import { isIP } from 'node:net';
import { parseBoolean, parseBytes, parseDurationMs } from './quantity.js';
import { readStringSlice } from './string-slice.js';

export type Reading<Value> = Readonly<{ kind: 'read'; value: Value }> | Readonly<{ kind: 'wrong'; problem: string }>;

/**
 * The fields of every option. An option of a command has only these, because a command has no
 * configuration file.
 */
export type CommandOption<Value> = Readonly<{
  /** The name without dashes. It is kcp's name if kcp's cache server has the same option. */
  flag: string;
  /**
   * As an operator would write it; `<root-directory>` means the value of `--root-directory`.
   * Undefined: there is no default. `read` decides whether the option must be given.
   */
  default: string | undefined;
  read: (given: unknown) => Reading<Value>;
  placeholder: string;
  /** The accepted values, with bounds, as the end of a sentence "must be …". */
  acceptedValues: string;
  help: string;
  /** The option may be given several times. Its text is then all values, one per line. */
  repeatable?: boolean;
}>;

export type Option<Value> = CommandOption<Value> &
  Readonly<{
    /** Section and key in the configuration file. */
    yaml: string;
  }>;

export type ValueOf<Declared extends CommandOption<unknown>> = Declared extends CommandOption<infer Value> ? Value : never;

/** The text of a repeatable option after it is given again. */
export function joined(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before}\n${value}`;
}

/** The environment variable is derived from the flag, so the two cannot differ. */
export function environmentName({ flag }: Pick<CommandOption<unknown>, 'flag'>): string {
  return `STRATA_${flag.replaceAll('-', '_').toUpperCase()}`;
}

/** Says what value is missing. For a file, `acceptedValues` would not say which, so `help` does. */
export function describeMissing({
  placeholder,
  acceptedValues,
  help,
}: Pick<CommandOption<unknown>, 'placeholder' | 'acceptedValues' | 'help'>): string {
  return placeholder === 'file' ? `${help.charAt(0).toLowerCase()}${help.slice(1).replace(/\.$/, '')}` : acceptedValues;
}

type Place = Readonly<{ flag: string; help: string }>;
type Kind<Value> = Pick<CommandOption<Value>, 'placeholder' | 'acceptedValues' | 'read'>;
type Bounds<Limit> = Readonly<{ default: string; min: Limit; max: Limit }>;

export function count<P extends Place & Bounds<number>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const acceptedValues = `a whole number from ${min} to ${max}`;
  return {
    ...rest,
    placeholder: 'number',
    acceptedValues,
    read: bounded(acceptedValues, min, max, (text) => (/^\d+$/.test(text) ? Number(text) : undefined)),
  };
}

export function bytes<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const acceptedValues = `an amount of bytes from ${min} to ${max}, such as 64MiB`;
  return { ...rest, placeholder: 'bytes', acceptedValues, read: bounded(acceptedValues, parseBytes(min)!, parseBytes(max)!, parseBytes) };
}

/** The setting is in milliseconds; the text may have another unit. */
export function duration<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const acceptedValues = `a duration from ${min} to ${max}, such as 250ms, 1m30s or 24h`;
  return {
    ...rest,
    placeholder: 'duration',
    acceptedValues,
    read: bounded(acceptedValues, parseDurationMs(min)!, parseDurationMs(max)!, parseDurationMs),
  };
}

/**
 * On the command line a boolean flag without a value means true. Its value follows `=` and is never
 * the next argument.
 */
export const booleanPlaceholder = 'boolean';

export function toggle<P extends Place & Readonly<{ default: 'true' | 'false' }>>(rest: P): P & Kind<boolean> {
  const acceptedValues = 'true or false';
  return { ...rest, placeholder: booleanPlaceholder, acceptedValues, read: readBy(acceptedValues, parseBoolean) };
}

export function choice<const Word extends string, P extends Place & Readonly<{ default: Word; words: readonly Word[] }>>({
  words,
  ...rest
}: P & Readonly<{ words: readonly Word[] }>): Omit<P, 'words'> & Kind<Word> {
  const acceptedValues = words.join(' or ');
  return {
    ...rest,
    placeholder: words.join('|'),
    acceptedValues,
    read: readBy(acceptedValues, (text) => words.find((word) => word === text)),
  };
}

/**
 * Texts separated by commas, read as pflag does; empty means none. `splitsQuoted`: a comma in
 * quotation marks separates texts too.
 */
export function list<P extends Place & Readonly<{ default: string; pattern: RegExp; acceptedValues: string; splitsQuoted?: true }>>({
  pattern,
  acceptedValues,
  splitsQuoted,
  ...rest
}: P): Omit<P, 'pattern' | 'acceptedValues' | 'splitsQuoted'> & Readonly<{ repeatable: true }> & Kind<readonly string[]> {
  const read = readBy(acceptedValues, (text) => {
    const texts = readStringSlice(text)?.flatMap((each) => (splitsQuoted === true ? each.split(',') : [each]));
    const found = texts?.filter((each) => each !== '');
    return found?.every((each) => pattern.test(each)) === true ? found : undefined;
  });
  return { ...rest, placeholder: 'list', repeatable: true, acceptedValues, read };
}

/**
 * Texts separated by commas, read as pflag does, or given by several flags, or as a list in the
 * file. Empty means none, which is the default.
 */
export function several<Value, P extends Place & Readonly<{ placeholder: string; acceptedValues: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (texts: readonly string[]) => readonly Value[] | undefined }>): Omit<P, 'parse'> &
  Readonly<{ default: undefined; repeatable: true }> &
  Kind<readonly Value[]> {
  const read = (given: unknown): Reading<readonly Value[]> => {
    const text = textOf(given);
    const isList = Array.isArray(given) && given.every((each) => typeof each === 'string');
    const texts = isList ? given : text === undefined ? undefined : readStringSlice(text);
    const values = texts === undefined ? undefined : parse(texts);
    return values === undefined ? mustBe(rest.acceptedValues) : { kind: 'read', value: values };
  };
  return { ...rest, default: undefined, repeatable: true, read };
}

/** Empty means every interface, as in kcp. */
export function address<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  const acceptedValues = 'an IP address';
  const read = readBy(acceptedValues, (text) => (text === '' ? '0.0.0.0' : isIP(text) === 0 ? undefined : text));
  return { ...rest, placeholder: 'ip', acceptedValues, read };
}

/** `host`: '' for every interface. */
export type BindAddress = Readonly<{ host: string; port: number }>;

/** `0` means none, as in controller-runtime. A port is a number, and an empty text is an error. */
export function bindAddress<P extends Place>(rest: P): P & Readonly<{ default: string }> & Kind<BindAddress | undefined> {
  const acceptedValues = 'host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080, or 0 for none';
  const read = (given: unknown): Reading<BindAddress | undefined> =>
    given === '0' ? { kind: 'read', value: undefined } : readBy(acceptedValues, parseBindAddress)(given);
  return { ...rest, default: '0', placeholder: 'host:port', acceptedValues, read };
}

const hostCharactersMax = 253;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const numeric = /^[\d.]*$/;

function parseBindAddress(text: string): BindAddress | undefined {
  const [, bracketed, plain = '', digits = ''] = /^(?:\[([^\]]*)\]|([^[\]:]*)):(\d{1,5})$/.exec(text) ?? [];
  const isHost = bracketed === undefined ? plain === '' || isIP(plain) === 4 || isHostName(plain) : isIP(bracketed) === 6;
  const port = Number(digits);
  return digits !== '' && isHost && port <= 65_535 ? { host: bracketed ?? plain, port } : undefined;
}

function isHostName(text: string): boolean {
  return text.length <= hostCharactersMax && !numeric.test(text) && text.split('.').every((each) => label.test(each));
}

const pathCharactersMax = 4096;
const acceptsPath = `a path of at most ${pathCharactersMax} characters`;

function parsePath(text: string): string | undefined {
  return text.length <= pathCharactersMax && !text.includes('\0') ? text : undefined;
}

/** Empty means the working directory, because kcp-operator passes `--root-directory=`. */
export function directory<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  return {
    ...rest,
    placeholder: 'directory',
    acceptedValues: acceptsPath,
    read: readBy(acceptsPath, (text) => parsePath(text === '' ? '.' : text)),
  };
}

/**
 * Absent by default. Empty also means absent, so that a flag can override the configuration file.
 */
export function file<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string | undefined> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    acceptedValues: acceptsPath,
    read: orAbsent(readBy(acceptsPath, parsePath)),
  };
}

export function neededFile<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    acceptedValues: acceptsPath,
    read: readBy(acceptsPath, (text) => (text === '' ? undefined : parsePath(text))),
  };
}

/** Absent by default. Empty also means absent. */
export function name<P extends Place & Readonly<{ acceptedValues: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => string | undefined }>): Omit<P, 'parse'> &
  Readonly<{ default: undefined }> &
  Kind<string | undefined> {
  return { ...rest, default: undefined, placeholder: 'name', read: orAbsent(readBy(rest.acceptedValues, parse)) };
}

/** Any other value that can be parsed. The option may be absent exactly if `parse` accepts ''. */
export function parsedBy<Value, P extends Place & Readonly<{ placeholder: string; acceptedValues: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => Value | undefined }>): Omit<P, 'parse'> & Readonly<{ default: undefined }> & Kind<Value> {
  return { ...rest, default: undefined, read: readBy(rest.acceptedValues, parse) };
}

function bounded(
  acceptedValues: string,
  min: number,
  max: number,
  parse: (text: string) => number | undefined,
): (given: unknown) => Reading<number> {
  return readBy(acceptedValues, (text) => {
    const value = parse(text);
    return value === undefined || value < min || value > max ? undefined : value;
  });
}

function readBy<Value>(acceptedValues: string, parse: (text: string) => Value | undefined): (given: unknown) => Reading<Value> {
  return (given) => {
    const text = textOf(given);
    if (text === undefined) return { kind: 'wrong', problem: 'must be a single value' };
    const value = parse(text);
    return value === undefined ? mustBe(acceptedValues) : { kind: 'read', value };
  };
}

function orAbsent<Value>(read: (given: unknown) => Reading<Value>): (given: unknown) => Reading<Value | undefined> {
  return (given) => (given === '' ? { kind: 'read', value: undefined } : read(given));
}

/** Flags and variables are texts. YAML also has numbers and booleans, whose text means the same. */
function textOf(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  return typeof given === 'boolean' || Number.isFinite(given) ? String(given) : undefined;
}

function mustBe(acceptedValues: string): Reading<never> {
  return { kind: 'wrong', problem: `must be ${acceptedValues}` };
}
