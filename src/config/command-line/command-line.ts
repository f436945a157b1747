/**
 * The grammar of the command line, built from declarations: commands of one or two words, their
 * operands and options. A valid call runs the command. An invalid call, or a call for help, throws
 * commander's error.
 *
 * Flags are read as pflag does in kcp's programs: `--name value`, `--name=value`, and a boolean
 * alone or with `=false`. After `--` there are no flags.
 */
import { Command, CommanderError, Help, Option as CommanderOption } from 'commander';
import { booleanPlaceholder, environmentName, joined, type CommandOption } from '../options/option.js';
import { SettingsError } from '../settings-error.js';

/** An option as the command line needs it. The command itself parses the value. */
export type OptionDeclaration = Pick<CommandOption<unknown>, 'flag' | 'placeholder' | 'default' | 'help' | 'repeatable'>;

export type DeclaredCommand = Readonly<{
  /** `['shards', 'remove']` is called as `strata shards remove`. */
  words: readonly [string] | readonly [string, string];
  /** The operands in the help: `<name>`, `<name...>`, or '' for none. */
  operands: string;
  help: string;
  options: readonly OptionDeclaration[];
  /** The exit codes that only this command has, with their meanings. */
  exitCodes?: Readonly<Record<number, string>> | undefined;
  /**
   * Throws SettingsError for a mistake of the caller, CacheError for a failure. Resolves with the
   * exit code if it is one of the command's own.
   */
  run: (called: Called) => Promise<number | void>;
}>;

/** The exit codes that every command has. */
export const exitCodes = { done: 0, failed: 1, misused: 2 } as const;
const meanings: Readonly<Record<number, string>> = {
  [exitCodes.done]: 'done, or stopped as asked',
  [exitCodes.failed]: 'failed: standard error says why',
  [exitCodes.misused]: 'called wrongly: standard error says how',
};

export type Called = Readonly<{
  operands: readonly string[];
  /** Keyed by flag, without dashes. The values of a repeatable flag are joined by line breaks. */
  flags: Readonly<Record<string, string>>;
}>;

export type CommandLine = Readonly<{
  name: string;
  description: string;
  version: string;
  /** The descriptions of groups of commands, by their common first word. */
  groups: Readonly<Record<string, string>>;
  commands: readonly DeclaredCommand[];
  /** Prints the help and the version. */
  print: (text: string) => void;
  /** Prints the help if the arguments name no command. */
  printError: (text: string) => void;
}>;

export function exitCodeOf(error: unknown): number {
  // Commander's exit code is 0 if the user requested the help or the version. The code is 1 if
  // commander shows the help because no command was named.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.misused;
  return error instanceof SettingsError ? exitCodes.misused : exitCodes.failed;
}

/** Resolves with the exit code. Throws CommanderError, and the command's errors. */
export async function runCommandLine(
  { name, description, version, groups, commands, print, printError }: CommandLine,
  args: readonly string[],
): Promise<number> {
  let exitCode: number = exitCodes.done;
  const ended = (code: number): void => void (exitCode = code);
  const program = new Command(name)
    .description(description)
    .version(version, '--version')
    .exitOverride()
    .configureHelp(helpForm)
    .configureOutput({ writeOut: print, writeErr: printError, outputError: () => {} });
  const parents = new Map<string, Command>();
  for (const declared of commands) {
    const [first, second] = declared.words;
    if (second === undefined) {
      addTo(program, [first, declared], ended);
      continue;
    }
    const parent = parents.get(first) ?? program.command(first).description(groups[first] ?? '');
    parents.set(first, parent);
    addTo(parent, [second, declared], ended);
  }
  await program.parseAsync(detachValues(args, commands), { from: 'user' });
  return exitCode;
}

function addTo(parent: Command, [word, declared]: readonly [string, DeclaredCommand], ended: (exitCode: number) => void): void {
  const { operands, help, options, run } = declared;
  const command = parent.command(word).description(help).allowExcessArguments(false);
  if (operands !== '') command.arguments(operands);
  command.addHelpText('after', () => `\nExit codes:\n${formatExitCodes(declared)}`);
  const flagByAttribute = new Map<string, string>();
  for (const declaration of options) {
    const option = commanderOption(declaration);
    command.addOption(option);
    flagByAttribute.set(option.attributeName(), declaration.flag);
  }
  command.action(async () => {
    const flags: Record<string, string> = {};
    for (const [attribute, value] of Object.entries<unknown>(command.opts()))
      flags[flagByAttribute.get(attribute) ?? attribute] = String(value);
    ended((await run({ operands: command.args, flags })) ?? exitCodes.done);
  });
}

/** The help of a program whose flags commander does not parse. Flags are given without dashes. */
export function formatHelpOfFlags(
  name: string,
  description: string,
  flags: readonly Readonly<{ flag: string; meaning: string }>[],
): string {
  const command = new Command(name).usage('[flags]').description(description).helpOption(false).configureHelp(helpForm);
  for (const { flag, meaning } of flags) command.addOption(new CommanderOption(`${flag.length === 1 ? '-' : '--'}${flag}`, meaning));
  return command.helpInformation();
}

/** A description needs at least this width beside its flag. */
const besideColumnsMin = 40;

/**
 * Like commander's, but puts a description on the next line if a long flag leaves it fewer than
 * `besideColumnsMin` columns.
 */
const formatItem: Help['formatItem'] = (term, termWidth, description, helper) => {
  const { helpWidth = 80 } = helper;
  if (helpWidth - termWidth - 4 >= besideColumnsMin) return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
  const indent = ' '.repeat(6);
  return `  ${term}\n${indent}${helper.boxWrap(description, helpWidth - indent.length).replaceAll('\n', `\n${indent}`)}`;
};

/** Makes commander wrap the help in any terminal, however narrow. */
const helpForm = { formatItem, minWidthToWrap: 1 };

function formatExitCodes({ exitCodes: own = {} }: DeclaredCommand): string {
  return Object.entries({ ...meanings, ...own })
    .map(([code, meaning]) => `  ${code}  ${meaning}`)
    .join('\n');
}

function commanderOption(declaration: OptionDeclaration): CommanderOption {
  const { flag, placeholder, help, repeatable = false } = declaration;
  const byDefault = declaration.default === undefined ? '' : `; default: ${declaration.default}`;
  const description = `${help} (env: ${environmentName(declaration)}${byDefault})`;
  if (placeholder === booleanPlaceholder) return new CommanderOption(`--${flag} [${placeholder}]`, description);
  const option = new CommanderOption(`--${flag} <${placeholder}>`, description);
  return repeatable ? option.argParser(joined) : option;
}

/**
 * Passes each value to commander as the argument after its flag, because commander suggests the
 * nearest option for `--bind-adress x` but not for `--bind-adress=x`. Passes a boolean without a
 * value as `true`, because commander would use the next argument as its value. No flag is boolean
 * in one command and not in another.
 */
function detachValues(args: readonly string[], commands: readonly DeclaredCommand[]): readonly string[] {
  const placeholders: ReadonlyMap<string, string> = new Map(
    commands.flatMap(({ options }) => options.map(({ flag, placeholder }) => [`--${flag}`, placeholder] as const)),
  );
  const detached: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at]!;
    if (arg === '--') return [...detached, ...args.slice(at)];
    const [, flag = arg, value] = /^(--[^=]+)=([^]*)$/.exec(arg) ?? [];
    const placeholder = placeholders.get(flag);
    detached.push(flag);
    if (value !== undefined) detached.push(value);
    else if (placeholder === booleanPlaceholder) detached.push('true');
    else if (placeholder !== undefined && at + 1 < args.length) detached.push(args[(at += 1)]!);
  }
  return detached;
}
