/**
 * The grammar of the command line, made from declarations: commands of one or two words, their operands and options. A correct
 * call runs that command; a wrong one, or one only for help, throws commander's error.
 */
import { Command, Option as CommanderOption } from 'commander';
import { environmentName, type CommandOption } from './option.js';

/** An option as the command line knows it: parsing its value is the command's part. */
export type OptionDeclaration = Pick<CommandOption<unknown>, 'flag' | 'placeholder' | 'default' | 'help' | 'repeatable'>;

export type DeclaredCommand = Readonly<{
  /** `['shards', 'remove']` is called as `strata shards remove`. */
  words: readonly [string] | readonly [string, string];
  /** As help shows them: `<name>`, `<name...>`, or '' for none. */
  operands: string;
  help: string;
  options: readonly OptionDeclaration[];
  run: (called: Called) => Promise<void>;
}>;

export type Called = Readonly<{
  operands: readonly string[];
  /** By flag, without dashes. A repeatable one has its values with commas between. */
  flags: Readonly<Record<string, string>>;
}>;

export type CommandLine = Readonly<{
  name: string;
  description: string;
  version: string;
  /** What commands that begin with the same word have in common. */
  groups: Readonly<Record<string, string>>;
  commands: readonly DeclaredCommand[];
}>;

/** Runs what the arguments call. Throws CommanderError. */
export async function runCommandLine(
  { name, description, version, groups, commands }: CommandLine,
  args: readonly string[],
): Promise<void> {
  const program = new Command(name)
    .description(description)
    .version(version, '--version')
    .exitOverride()
    .configureOutput({ outputError: () => {} });
  const parents = new Map<string, Command>();
  for (const declared of commands) {
    const [first, second] = declared.words;
    if (second === undefined) {
      addTo(program, first, declared);
      continue;
    }
    const parent = parents.get(first) ?? program.command(first).description(groups[first] ?? '');
    parents.set(first, parent);
    addTo(parent, second, declared);
  }
  await program.parseAsync(detachValues(args), { from: 'user' });
}

function addTo(parent: Command, word: string, { operands, help, options, run }: DeclaredCommand): void {
  const command = parent.command(word).description(help).allowExcessArguments(false);
  if (operands !== '') command.arguments(operands);
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
    await run({ operands: command.args, flags });
  });
}

function commanderOption(declaration: OptionDeclaration): CommanderOption {
  const { flag, placeholder, help, repeatable = false } = declaration;
  const byDefault = declaration.default === undefined || placeholder === '' ? '' : `; default: ${declaration.default}`;
  const description = `${help} (env: ${environmentName(declaration)}${byDefault})`;
  if (placeholder === '') return new CommanderOption(`--${flag}`, description);
  const option = new CommanderOption(`--${flag} <${placeholder}>`, description);
  if (!repeatable) return option;
  return option.argParser((value: string, before: string | undefined) => (before === undefined ? value : `${before},${value}`));
}

/** Commander names the nearest option for `--bind-adress x`, not for `--bind-adress=x`. */
function detachValues(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const equals = arg.indexOf('=');
    return arg.startsWith('--') && equals !== -1 ? [arg.slice(0, equals), arg.slice(equals + 1)] : [arg];
  });
}
