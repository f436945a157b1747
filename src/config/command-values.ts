/** The values of a command's options, from flags, variables and defaults. All problems are reported at once. */
import type { z } from 'zod';
import { fromCommandLine, type CommandLineSources } from './given.js';
import type { CommandOption } from './option.js';
import { SettingsError } from './settings-error.js';
import { unknownVariables } from './variables.js';

export type CommandOptions = Readonly<Record<string, CommandOption<unknown>>>;

export type CommandValues<Options extends CommandOptions> = { readonly [Key in keyof Options]: z.infer<Options[Key]['schema']> };

/** Throws SettingsError. */
export function readCommandValues<Options extends CommandOptions>(options: Options, sources: CommandLineSources): CommandValues<Options> {
  const problems = [...unknownVariables(sources.environment)];
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(options)) {
    const given = fromCommandLine(option, sources);
    const result = option.schema.safeParse(given?.value ?? option.default ?? '');
    if (result.success) values[key] = result.data;
    else if (given === undefined) problems.push(`--${option.flag} must be given: ${option.accepts}`);
    else problems.push(`${given.source}: ${result.error.issues[0]?.message ?? 'is wrong'}`);
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return Object.freeze(values as CommandValues<Options>);
}
