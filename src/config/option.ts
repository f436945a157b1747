/**
 * One option, declared once: from the declaration come the flag, the environment variable, the key in the file, the default,
 * the bounds, the help and the type of the setting. Every kind of value has bounds; there is no option without any.
 */
import { isIP } from 'node:net';
import { parseBoolean, parseBytes, parseDurationMs } from './quantity.js';
import { readStringSlice } from './string-slice.js';

/** The value of what an operator gave, or what is wrong with it. */
export type Reading<Value> = Readonly<{ kind: 'read'; value: Value }> | Readonly<{ kind: 'wrong'; problem: string }>;

/** What every option has. An option of a command, which runs once, has no more: it needs no key in a file. */
export type CommandOption<Value> = Readonly<{
  /** Without dashes. Upstream's name where upstream's cache server has the same option. */
  flag: string;
  /** As an operator would write it; `<root-directory>` stands for that setting. Undefined: it may be absent, or must be given. */
  default: string | undefined;
  read: (given: unknown) => Reading<Value>;
  /** The word for its value in the help. */
  placeholder: string;
  /** The values it accepts, with bounds, as the end of "must be …". */
  accepts: string;
  help: string;
  /** It may be given several times: its text is then all values, a line each. */
  repeatable?: boolean;
}>;

/** One of the server's. */
export type Option<Value> = CommandOption<Value> &
  Readonly<{
    /** Section and key in the configuration file. */
    yaml: string;
  }>;

/** The value that an option gives. */
export type ValueOf<Declared extends CommandOption<unknown>> = Declared extends CommandOption<infer Value> ? Value : never;

/** What a repeatable option has then, where it is given again. */
export function joined(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before}\n${value}`;
}

/** The environment variable is made from the flag, so the two cannot drift apart. */
export function environmentName({ flag }: Pick<CommandOption<unknown>, 'flag'>): string {
  return `STRATA_${flag.replaceAll('-', '_').toUpperCase()}`;
}

/** What to give, for whoever left it out. The help says what a file is; its path may be anything. */
export function wantedOf({ placeholder, accepts, help }: Pick<CommandOption<unknown>, 'placeholder' | 'accepts' | 'help'>): string {
  return placeholder === 'file' ? `${help.charAt(0).toLowerCase()}${help.slice(1).replace(/\.$/, '')}` : accepts;
}

type Place = Readonly<{ flag: string; help: string }>;
type Kind<Value> = Pick<CommandOption<Value>, 'placeholder' | 'accepts' | 'read'>;
type Bounds<Limit> = Readonly<{ default: string; min: Limit; max: Limit }>;

export function count<P extends Place & Bounds<number>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `a whole number from ${min} to ${max}`;
  return {
    ...rest,
    placeholder: 'number',
    accepts,
    read: bounded(accepts, min, max, (text) => (/^\d+$/.test(text) ? Number(text) : undefined)),
  };
}

export function bytes<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `an amount of bytes from ${min} to ${max}, such as 64MiB`;
  return { ...rest, placeholder: 'bytes', accepts, read: bounded(accepts, parseBytes(min)!, parseBytes(max)!, parseBytes) };
}

/** The setting is in milliseconds, whatever unit the text has. */
export function duration<P extends Place & Bounds<string>>({ min, max, ...rest }: P): Omit<P, 'min' | 'max'> & Kind<number> {
  const accepts = `a duration from ${min} to ${max}, such as 250ms, 1m30s or 24h`;
  return {
    ...rest,
    placeholder: 'duration',
    accepts,
    read: bounded(accepts, parseDurationMs(min)!, parseDurationMs(max)!, parseDurationMs),
  };
}

/** On the command line such a flag may stand alone, and is true then; its value follows `=`, never as the next argument. */
export const booleanPlaceholder = 'boolean';

export function toggle<P extends Place & Readonly<{ default: 'true' | 'false' }>>(rest: P): P & Kind<boolean> {
  const accepts = 'true or false';
  return { ...rest, placeholder: booleanPlaceholder, accepts, read: readBy(accepts, parseBoolean) };
}

export function choice<const Word extends string, P extends Place & Readonly<{ default: Word; words: readonly Word[] }>>({
  words,
  ...rest
}: P & Readonly<{ words: readonly Word[] }>): Omit<P, 'words'> & Kind<Word> {
  const accepts = words.join(' or ');
  return { ...rest, placeholder: words.join('|'), accepts, read: readBy(accepts, (text) => words.find((word) => word === text)) };
}

/** Texts separated by commas, as pflag has them; empty means none. `splitsQuoted`: a comma in quotation marks separates too. */
export function list<P extends Place & Readonly<{ default: string; pattern: RegExp; accepts: string; splitsQuoted?: true }>>({
  pattern,
  accepts,
  splitsQuoted,
  ...rest
}: P): Omit<P, 'pattern' | 'accepts' | 'splitsQuoted'> & Readonly<{ repeatable: true }> & Kind<readonly string[]> {
  const read = readBy(accepts, (text) => {
    const texts = readStringSlice(text)?.flatMap((each) => (splitsQuoted === true ? each.split(',') : [each]));
    const found = texts?.filter((each) => each !== '');
    return found?.every((each) => pattern.test(each)) === true ? found : undefined;
  });
  return { ...rest, placeholder: 'list', repeatable: true, accepts, read };
}

/** None by default. Texts separated by commas, as pflag has them, given several times, or a list of them in the file; empty means none. */
export function several<Value, P extends Place & Readonly<{ placeholder: string; accepts: string }>>({
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
    return values === undefined ? mustBe(rest.accepts) : { kind: 'read', value: values };
  };
  return { ...rest, default: undefined, repeatable: true, read };
}

/** Empty means every interface, as upstream has it. */
export function address<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  const accepts = 'an IP address';
  const read = readBy(accepts, (text) => (text === '' ? '0.0.0.0' : isIP(text) === 0 ? undefined : text));
  return { ...rest, placeholder: 'ip', accepts, read };
}

/** `host`: '' for every interface. */
export type BindAddress = Readonly<{ host: string; port: number }>;

/** As controller-runtime has it: `0` for none. A port has no name here, and nothing is listened to because a text is empty. */
export function bindAddress<P extends Place>(rest: P): P & Readonly<{ default: string }> & Kind<BindAddress | undefined> {
  const accepts = 'host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080, or 0 for none';
  const read = (given: unknown): Reading<BindAddress | undefined> =>
    given === '0' ? { kind: 'read', value: undefined } : readBy(accepts, parseBindAddress)(given);
  return { ...rest, default: '0', placeholder: 'host:port', accepts, read };
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

/** Empty means the working directory: kcp-operator passes `--root-directory=`. */
export function directory<P extends Place & Readonly<{ default: string }>>(rest: P): P & Kind<string> {
  return {
    ...rest,
    placeholder: 'directory',
    accepts: acceptsPath,
    read: readBy(acceptsPath, (text) => parsePath(text === '' ? '.' : text)),
  };
}

/** Absent by default; empty means absent as well, so that a flag can take back what a file says. */
export function file<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string | undefined> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    accepts: acceptsPath,
    read: orAbsent(readBy(acceptsPath, parsePath)),
  };
}

/** A file that the command cannot do without. */
export function neededFile<P extends Place>(rest: P): P & Readonly<{ default: undefined }> & Kind<string> {
  return {
    ...rest,
    default: undefined,
    placeholder: 'file',
    accepts: acceptsPath,
    read: readBy(acceptsPath, (text) => (text === '' ? undefined : parsePath(text))),
  };
}

/** Absent by default; empty means absent as well. */
export function name<P extends Place & Readonly<{ accepts: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => string | undefined }>): Omit<P, 'parse'> &
  Readonly<{ default: undefined }> &
  Kind<string | undefined> {
  return { ...rest, default: undefined, placeholder: 'name', read: orAbsent(readBy(rest.accepts, parse)) };
}

/** Any other value that can be parsed. It may be absent exactly when '' can be parsed. */
export function parsedBy<Value, P extends Place & Readonly<{ placeholder: string; accepts: string }>>({
  parse,
  ...rest
}: P & Readonly<{ parse: (text: string) => Value | undefined }>): Omit<P, 'parse'> & Readonly<{ default: undefined }> & Kind<Value> {
  return { ...rest, default: undefined, read: readBy(rest.accepts, parse) };
}

function bounded(
  accepts: string,
  min: number,
  max: number,
  parse: (text: string) => number | undefined,
): (given: unknown) => Reading<number> {
  return readBy(accepts, (text) => {
    const value = parse(text);
    return value === undefined || value < min || value > max ? undefined : value;
  });
}

/** `parse` gives undefined for a text that is not accepted. */
function readBy<Value>(accepts: string, parse: (text: string) => Value | undefined): (given: unknown) => Reading<Value> {
  return (given) => {
    const text = textOf(given);
    if (text === undefined) return { kind: 'wrong', problem: 'must be a single value' };
    const value = parse(text);
    return value === undefined ? mustBe(accepts) : { kind: 'read', value };
  };
}

/** Empty means absent. */
function orAbsent<Value>(read: (given: unknown) => Reading<Value>): (given: unknown) => Reading<Value | undefined> {
  return (given) => (given === '' ? { kind: 'read', value: undefined } : read(given));
}

/** Flags and variables are texts; YAML has numbers and booleans of its own, whose text means the same. */
function textOf(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  return typeof given === 'boolean' || Number.isFinite(given) ? String(given) : undefined;
}

function mustBe(accepts: string): Reading<never> {
  return { kind: 'wrong', problem: `must be ${accepts}` };
}
