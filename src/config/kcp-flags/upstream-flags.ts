/**
 * The command lines of kcp's own programs, so that this program can be started in place of those
 * binaries. Two tables say what each flag does: cache-server-flags.ts, front-proxy-flags.ts.
 *
 * The grammar is pflag's: `--name value`, `--name=value`, a boolean alone or with `=false`, `-v 4`,
 * `-v4`, `-v=4`. `_` counts as `-`. The last value of a flag wins, but a list keeps all values.
 * What this program does with a flag of kcp (commit dac74f59):
 * - It becomes an option of this program.
 * - It tunes a part that this program does not have: it is accepted with a warning, one per reason.
 * - It is refused if ignoring it would weaken security (ciphers, encryption, who has access) or
 *   lose data.
 *
 * Options of this program work as well. Any other flag is an error.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import { booleanPlaceholder, joined, type CommandOption } from '../options/option.js';
import { configFileOption, options } from '../options/options.js';
import { parseBoolean } from '../options/quantity.js';
import { suggestion } from '../command-line/nearest.js';

export type UpstreamFlags =
  | Readonly<{ kind: 'read'; flags: Readonly<Record<string, string>>; warnings: readonly string[] }>
  | Readonly<{ kind: 'help' | 'version' }>
  | Readonly<{ kind: 'refused'; problems: readonly string[] }>;

export type FlagEffect =
  | Readonly<{ kind: 'option'; flag: string; value: string }>
  | Readonly<{ kind: 'accepted' }>
  | Readonly<{ kind: 'warning'; why: string }>
  | Readonly<{ kind: 'refusal'; why: string }>;

/**
 * `decide` returns the effects of a value. A `boolean` flag does not use the next argument. An
 * `isList` flag is decided once, with all its values, one per line (string-slice.ts).
 */
export type UpstreamFlag = Readonly<{
  boolean: boolean;
  isList: boolean;
  decide: (value: string) => readonly FlagEffect[];
  meaning: string;
}>;

/** Keyed by name, without dashes. */
export type UpstreamTable = ReadonlyMap<string, UpstreamFlag>;

export const accepted: FlagEffect = { kind: 'accepted' };
const noKlog = 'logs are events here, see --log-level and --log-format';
const noProfiler = 'there is no profiler of Go here, and nothing listens at that address; see process_… and nodejs_… in /metrics';
const debugVerbosityMin = 4;

/** The flags that every server of kcp has. */
export const servingFlags: readonly (readonly [string, UpstreamFlag])[] = [
  [configFileOption.flag, becomes(configFileOption.flag, configFileOption.help)],
  ...Object.values(options).map(ofOption),

  ['disable-http2-serving', decidedBoolean('the opposite of --http2', (disabled) => [option('http2', String(!disabled))])],
  // In kcp, zero means the default.
  [
    'http2-max-streams-per-connection',
    decided(options.http2StreamsMax.help, (value) => (value === '0' ? [accepted] : [option('http2-max-streams-per-connection', value)])),
  ],
  ['tls-min-version', decided(options.tlsVersionMin.help, decideTlsVersion)],
  [
    'tls-curve-preferences',
    refused('the server offers the curves of OpenSSL, which may be more than these; leave the flag out to accept that'),
  ],
  ['tls-sni-cert-key', refused('one certificate is shown to everybody; put all names into --tls-cert-file')],
  [
    'permit-port-sharing',
    decidedBoolean('false', (shared) =>
      shared ? [warning('two processes cannot share one store, so the port is not shared')] : [accepted],
    ),
  ],
  ['permit-address-sharing', decidedBoolean('anything', () => [accepted])],

  [
    'v',
    decided('4 and above: debug', (value) =>
      /^\d+$/.test(value)
        ? [option('log-level', Number(value) >= debugVerbosityMin ? 'debug' : 'info')]
        : [refusal('must be a whole number')],
    ),
  ],
  ['logging-format', decided('json or text', decideLoggingFormat)],
  ...['vmodule', 'log-flush-frequency', 'log-json-info-buffer-size', 'log-text-info-buffer-size'].map(
    (name) => [name, warned(noKlog)] as const,
  ),
  ...['log-json-split-stream', 'log-text-split-stream'].map((name) => [name, warned(noKlog, true)] as const),
  ['feature-gates', warned('there are no feature gates here')],
  ['profiler-address', decided(`accepted: ${noProfiler}`, (value) => [value === '' ? accepted : warning(noProfiler)])],
];

export function readUpstreamFlags(args: readonly string[], table: UpstreamTable): UpstreamFlags {
  const flags: Record<string, string> = {};
  const namesByWarning = new Map<string, Set<string>>();
  const problems: string[] = [];
  const warn = (why: string, name: string): void => void entryOf(namesByWarning, why, () => new Set<string>()).add(name);

  const take = ({ name, flag, value }: Omit<GivenFlag, 'kind'>): void => {
    for (const fate of flag.decide(value)) {
      if (fate.kind === 'option') flags[fate.flag] = fate.value;
      if (fate.kind === 'warning') warn(fate.why, `--${name}`);
      if (fate.kind === 'refusal') problems.push(`--${name}=${value.replaceAll('\n', ',')}: ${fate.why}`);
    }
  };
  const lists = new Map<string, GivenFlag>();

  for (const given of split(args, table)) {
    if (given.kind === 'asked') return { kind: given.what };
    if (given.kind === 'stray') warn('arguments are ignored', JSON.stringify(given.text));
    else if (given.kind === 'problem') problems.push(given.text);
    else if (given.flag.isList) lists.set(given.name, { ...given, value: joined(given.value, lists.get(given.name)?.value) });
    else take(given);
  }
  for (const list of lists.values()) take(list);

  if (problems.length > 0) return { kind: 'refused', problems };
  return { kind: 'read', flags, warnings: [...namesByWarning].map(([why, names]) => `${[...names].join(', ')}: ${why}`) };
}

/** Sorted by name. */
export function describeUpstreamFlags(table: UpstreamTable): readonly Readonly<{ flag: string; meaning: string }>[] {
  return [...table].map(([flag, { meaning }]) => ({ flag, meaning })).toSorted((a, b) => a.flag.localeCompare(b.flag));
}

type GivenFlag = Readonly<{ kind: 'flag'; name: string; flag: UpstreamFlag; value: string }>;
type Given =
  | GivenFlag
  | Readonly<{ kind: 'stray'; text: string }>
  | Readonly<{ kind: 'problem'; text: string }>
  | Readonly<{ kind: 'asked'; what: 'help' | 'version' }>;

function* split(args: readonly string[], table: UpstreamTable): Generator<Given> {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg === '--') {
      yield* args.slice(at + 1).map((text): Given => ({ kind: 'stray', text }));
      return;
    }
    if (arg === '-h' || arg === '--help') yield { kind: 'asked', what: 'help' };
    else if (arg === '--version') yield { kind: 'asked', what: 'version' };
    else if (arg === '-' || !arg.startsWith('-')) yield { kind: 'stray', text: arg };
    else {
      const { name, attached } = parseArgument(arg);
      const flag = table.get(name);
      const next = args[at + 1];
      if (flag === undefined) yield { kind: 'problem', text: unknownFlag(arg, name, table) };
      else if (attached !== undefined) yield { kind: 'flag', name, flag, value: attached };
      else if (flag.boolean) yield { kind: 'flag', name, flag, value: 'true' };
      else if (next === undefined) yield { kind: 'problem', text: `--${name} needs a value` };
      else {
        yield { kind: 'flag', name, flag, value: next };
        at++;
      }
    }
  }
}

/** Parses `--name`, `--name=value`, or the short `-v`, whose value may be attached. */
function parseArgument(arg: string): { name: string; attached: string | undefined } {
  if (!arg.startsWith('--')) {
    const rest = arg.slice(2).replace(/^=/, '');
    return { name: arg[1]!, attached: arg.length === 2 ? undefined : rest };
  }
  const equals = arg.indexOf('=');
  const name = (equals === -1 ? arg.slice(2) : arg.slice(2, equals)).replaceAll('_', '-');
  return { name, attached: equals === -1 ? undefined : arg.slice(equals + 1) };
}

function unknownFlag(arg: string, name: string, table: UpstreamTable): string {
  return arg.startsWith('--') ? `unknown flag --${name}${suggestion(name, table.keys(), '--')}` : `unknown flag ${arg.slice(0, 2)}`;
}

function decideTlsVersion(value: string): readonly FlagEffect[] {
  switch (value) {
    case 'VersionTLS13':
      return [option('tls-min-version', 'TLSv1.3')];
    case 'VersionTLS12':
      return [option('tls-min-version', 'TLSv1.2')];
    case 'VersionTLS10':
    case 'VersionTLS11':
      return [option('tls-min-version', 'TLSv1.2'), warning('the server accepts no version older than TLS 1.2')];
    default:
      return [option('tls-min-version', value)];
  }
}

function decideLoggingFormat(value: string): readonly FlagEffect[] {
  if (value === 'json') return [option('log-format', 'json')];
  if (value === 'text') return [option('log-format', 'pretty')];
  return [refusal('must be json or text')];
}

export function becomes(flag: string, meaning: string): UpstreamFlag {
  return decided(meaning, (value) => [option(flag, value)]);
}

function decidedBoolean(meaning: string, decide: (value: boolean) => readonly FlagEffect[]): UpstreamFlag {
  const decideText = (text: string): readonly FlagEffect[] => {
    const value = parseBoolean(text);
    return value === undefined ? [refusal('must be true or false')] : decide(value);
  };
  return decided(meaning, decideText, true);
}

export function warned(why: string, boolean = false): UpstreamFlag {
  return decided(`accepted: ${why}`, () => [warning(why)], boolean);
}

export function refused(why: string): UpstreamFlag {
  return decided(`refused: ${why}`, () => [refusal(why)]);
}

export function decided(meaning: string, decide: UpstreamFlag['decide'], boolean = false): UpstreamFlag {
  return { boolean, isList: false, decide, meaning };
}

export function decidedOfList(meaning: string, decide: UpstreamFlag['decide']): UpstreamFlag {
  return { boolean: false, isList: true, decide, meaning };
}

export function option(flag: string, value: string): FlagEffect {
  return { kind: 'option', flag, value };
}

/** A flag that sets the option of the same name. */
export function ofOption({ flag, placeholder, help, repeatable }: CommandOption<unknown>): readonly [string, UpstreamFlag] {
  if (placeholder === booleanPlaceholder) return [flag, decidedBoolean(help, (on) => [option(flag, String(on))])];
  return [flag, repeatable === true ? decidedOfList(help, (value) => [option(flag, value)]) : becomes(flag, help)];
}

export function warning(why: string): FlagEffect {
  return { kind: 'warning', why };
}

export function refusal(why: string): FlagEffect {
  return { kind: 'refusal', why };
}
