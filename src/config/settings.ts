/**
 * Everything tuned, read once at the start: flag, else environment, else file, else default. Complete and frozen from then on.
 *
 * Nothing is guessed: an unknown flag or key and a value out of its bounds are errors that name their source, and all of
 * them are told at once. Unknown *variables* are not: Kubernetes itself sets STRATA_SERVICE_HOST beside a service named strata.
 */
import { join } from 'node:path';
import type { z } from 'zod';
import { ConfigSyntaxError, parseConfigDocument, type ConfigDocument } from '../domain/config-document.js';
import { nearest } from './nearest.js';
import { fromCommandLine, setVariable, type Given } from './given.js';
import type { Option } from './option.js';
import { configFileOption, options } from './options.js';
import { SettingsError } from './settings-error.js';

export type Settings = { readonly [Key in keyof typeof options]: z.infer<(typeof options)[Key]['schema']> };

export type SettingsSources = Readonly<{
  /** By flag, without dashes. */
  flags: Readonly<Record<string, string | undefined>>;
  environment: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
  /** By flag: defaults other than the table's, for another way to start this server. */
  defaults?: Readonly<Record<string, string>>;
}>;

export function loadSettings({ flags, environment, readFile, defaults = {} }: SettingsSources): Settings {
  const problems = unknownFlags(flags);
  const configFile = flags[configFileOption.flag] ?? setVariable(environment, configFileOption);
  const file = configFile === undefined ? undefined : readConfigFile(configFile, readFile, problems);
  const settings: Record<string, unknown> = {};

  for (const [key, option] of Object.entries<Option<unknown>>(options)) {
    const given =
      fromCommandLine(option, { flags, environment }) ?? file?.get(option.yaml) ?? fromDefault(option, defaults, settings['rootDirectory']);
    const result = option.schema.safeParse(given?.value ?? '');
    if (result.success) settings[key] = result.data;
    else problems.push(`${given?.source ?? key}: ${result.error.issues[0]?.message ?? 'is wrong'}`);
  }

  if (problems.length > 0) throw new SettingsError(problems);
  const complete = settings as Settings;
  const conflicts = rules.filter(({ holds }) => !holds(complete)).map(({ otherwise }) => otherwise);
  if (conflicts.length > 0) throw new SettingsError(conflicts);
  return Object.freeze(complete);
}

/** What may stand around a body in its frame. */
const frameOverheadBytes = 64 * 1024;

/** What no option can see by itself. */
const rules: readonly Readonly<{ holds: (settings: Settings) => boolean; otherwise: string }>[] = [
  {
    holds: (s) => (s.tlsCertFile === undefined) === (s.tlsPrivateKeyFile === undefined),
    otherwise: '--tls-cert-file and --tls-private-key-file must be given together',
  },
  { holds: (s) => s.headersTimeoutMs <= s.requestTimeoutMs, otherwise: '--headers-timeout must not be longer than --request-timeout' },
  {
    holds: (s) => s.bodyBytesMax <= s.commitBytesMax,
    otherwise: '--body-bytes-max must not be above --commit-bytes-max, or the largest body could never commit',
  },
  {
    holds: (s) => s.frameBytesMax >= s.bodyBytesMax + frameOverheadBytes,
    otherwise: '--frame-bytes-max must be at least 64KiB above --body-bytes-max, or the largest body could not be pushed',
  },
  {
    holds: (s) => s.pushBytesMax >= s.frameBytesMax && s.pushMutationsMax >= s.frameMutationsMax,
    otherwise: '--push-bytes-max and --push-mutations-max must not be below --frame-bytes-max and --frame-mutations-max',
  },
  { holds: (s) => s.commitBytesMax <= s.queueBytesMax, otherwise: '--commit-bytes-max must not be above --queue-bytes-max' },
  {
    holds: (s) => s.commitMutationsMax <= s.queueMutationsMax,
    otherwise: '--commit-mutations-max must not be above --queue-mutations-max',
  },
];

function fromDefault(option: Option<unknown>, defaults: Readonly<Record<string, string>>, rootDirectory: unknown): Given | undefined {
  const text = defaults[option.flag] ?? option.default;
  if (text === undefined) return undefined;
  const value = text.startsWith('<root-directory>') ? join(String(rootDirectory ?? ''), text.slice('<root-directory>'.length)) : text;
  return { value, source: `default of --${option.flag}` };
}

function unknownFlags(flags: SettingsSources['flags']): string[] {
  const known = [configFileOption, ...Object.values(options)].map(({ flag }) => flag);
  const unknown = Object.keys(flags).filter((flag) => flags[flag] !== undefined && !known.includes(flag));
  return unknown.map((flag) => `unknown flag --${flag}${suggestion(flag, known, '--')}`);
}

/** The file's values by their YAML name; what is wrong with it is added to `problems`. */
function readConfigFile(path: string, readFile: SettingsSources['readFile'], problems: string[]): ReadonlyMap<string, Given> {
  const given = new Map<string, Given>();
  let document: ConfigDocument;
  try {
    document = parseConfigDocument(readFile(path));
  } catch (error) {
    const where = error instanceof ConfigSyntaxError && error.line !== undefined ? `${path} line ${error.line}` : path;
    problems.push(`${where}: ${(error as Error).message}`);
    return given;
  }

  const known = Object.values(options).map(({ yaml }) => yaml);
  const sections = [...new Set(known.map((name) => name.split('.')[0]!))];
  for (const [section, content] of entries(document.value, path, 'the file', problems)) {
    const at = (keys: readonly string[]): string => `${path} line ${document.lineOf(keys) ?? 1}`;
    if (!sections.includes(section)) {
      problems.push(`${at([section])}: unknown key ${section}${suggestion(section, sections)}`);
      continue;
    }
    for (const [key, value] of entries(content, at([section]), section, problems)) {
      const name = `${section}.${key}`;
      const source = at([section, key]);
      if (!known.includes(name)) problems.push(`${source}: unknown key ${name}${suggestion(name, known)}`);
      else if (value !== null) given.set(name, { value, source: `${source}: ${name}` });
    }
  }
  return given;
}

/** An empty file or section says nothing, and is none the worse for it. */
function entries(value: unknown, source: string, what: string, problems: string[]): [string, unknown][] {
  if (value === null || value === undefined) return [];
  if (typeof value === 'object' && !Array.isArray(value)) return Object.entries(value);
  problems.push(`${source}: ${what} must be a mapping of keys to values`);
  return [];
}

function suggestion(word: string, known: readonly string[], prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`;
}
