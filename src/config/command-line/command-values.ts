/**
 * The values of a command's options, from flags, variables and defaults. All problems are reported
 * at once.
 */
import { describeMissing, environmentName, type CommandOption, type ValueOf } from '../options/option.js';
import { SettingsError } from '../settings-error.js';
import { unknownVariables } from './variables.js';

export type CommandOptions = Readonly<Record<string, CommandOption<unknown>>>;

export type CommandValues<Options extends CommandOptions> = { readonly [Key in keyof Options]: ValueOf<Options[Key]> };

/** Throws SettingsError. */
export function readCommandValues<Options extends CommandOptions>(options: Options, sources: CommandLineSources): CommandValues<Options> {
  const problems = [...unknownVariables(sources.environment)];
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(options)) {
    const given = fromCommandLine(option, sources);
    const reading = option.read(given?.value ?? option.default ?? '');
    if (reading.kind === 'read') values[key] = reading.value;
    else if (given === undefined) problems.push(`--${option.flag} must be given: ${describeMissing(option)}`);
    else problems.push(`${given.source}: ${reading.problem}`);
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return Object.freeze(values as CommandValues<Options>);
}

/**
 * The value that an operator gave for an option, and where it was given, so that an error can name
 * the place.
 */
export type Given = Readonly<{ value: unknown; source: string }>;

type Named = Pick<CommandOption<unknown>, 'flag'>;

type CommandLineSources = Readonly<{
  /** Keyed by flag, without dashes. */
  flags: Readonly<Record<string, string | undefined>>;
  environment: Readonly<Record<string, string | undefined>>;
}>;

/** A flag takes precedence over a variable. */
export function fromCommandLine(option: Named, { flags, environment }: CommandLineSources): Given | undefined {
  const flag = flags[option.flag];
  if (flag !== undefined) return { value: flag, source: `--${option.flag}=${flag.replaceAll('\n', ',')}` };
  const variable = setVariable(environment, option);
  return variable === undefined ? undefined : { value: variable, source: `environment variable ${environmentName(option)}=${variable}` };
}

/** An empty variable counts as unset, because a manifest cannot leave one out. */
export function setVariable(environment: CommandLineSources['environment'], option: Named): string | undefined {
  const value = environment[environmentName(option)];
  return value === '' ? undefined : value;
}
