/**
 * The value that an operator gave for an option, and where it was given, so that an error can name
 * the place.
 */
import { environmentName, type CommandOption } from './option.js';

export type Given = Readonly<{ value: unknown; source: string }>;

type Named = Pick<CommandOption<unknown>, 'flag'>;

export type CommandLineSources = Readonly<{
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
