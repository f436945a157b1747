/**
 * The values of a command's options, from flags, variables and defaults. All problems are reported
 * at once.
 */
import { fromCommandLine, type CommandLineSources } from './given.js';
import { describeMissing, type CommandOption, type ValueOf } from './option.js';
import { SettingsError } from './settings-error.js';
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
