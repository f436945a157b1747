/**
 * The command line as a function: which command the arguments call, what it prints, and its exit
 * code. It reaches the process only through its parameters.
 *
 * Exit codes: those of `exitCodes`, and those that a command declares. When the program is called
 * `cache-server` or `kcp-front-proxy`, it accepts the flags of that kcp program.
 */
import { CommanderError } from 'commander';
import { commandGroups, commands } from './commands/commands.js';
import { cacheServerDefaults, cacheServerFlags } from './config/kcp-flags/cache-server-flags.js';
import { exitCodeOf, exitCodes, formatHelpOfFlags, runCommandLine, type DeclaredCommand } from './config/command-line/command-line.js';
import { proxyOptions } from './config/options/command-options.js';
import { readCommandValues } from './config/command-line/command-values.js';
import { formatCompletion, shells } from './config/command-line/completion.js';
import { followedByFrontDoor, frontProxyDefaults, frontProxyFlags } from './config/kcp-flags/front-proxy-flags.js';
import { adviceOnAccess } from './config/no-access.js';
import { configFileOption, options } from './config/options/options.js';
import type { SettingsSources } from './config/settings.js';
import { SettingsError } from './config/settings-error.js';
import { describeUpstreamFlags, readUpstreamFlags, type UpstreamTable } from './config/kcp-flags/upstream-flags.js';
import { explain } from './domain/errors.js';
import { readRegularFile } from './regular-file.js';
import { runServer, type ServerSurroundings } from './server/run-server.js';
import { version } from './version.js';

/** `uid`: the user id that the program runs as, on systems that have user ids. */
export type ProgramSurroundings = ServerSurroundings & Readonly<{ printError: (text: string) => void; uid: number | undefined }>;

/**
 * `called`: the name under which the program was started. `hasFailed`: the process should exit
 * without waiting for the command's open handles.
 */
export async function runProgram(
  { called, args }: Readonly<{ called: string; args: readonly string[] }>,
  surroundings: ProgramSurroundings,
): Promise<Readonly<{ exitCode: number; hasFailed: boolean }>> {
  const name = Object.hasOwn(kcpPrograms, called) ? called : 'strata';
  try {
    return { exitCode: await run(name, args, surroundings), hasFailed: false };
  } catch (error) {
    const exitCode = exitCodeOf(error);
    // commander has already printed the help to standard error.
    const isPrinted = exitCode === exitCodes.done || (error instanceof CommanderError && error.code === 'commander.help');
    if (!isPrinted)
      surroundings.printError(`${name}: ${explain(error).replace(/^error: /, '')}${adviceOnAccess(error, surroundings.uid)}\n`);
    return { exitCode, hasFailed: exitCode !== exitCodes.done };
  }
}

async function run(name: string, args: readonly string[], surroundings: ProgramSurroundings): Promise<number> {
  const [first = '', ...rest] = args;
  if (name === 'strata' && !Object.hasOwn(kcpPrograms, first)) {
    const { print, printError } = surroundings;
    const description = 'A hierarchical cache server for kcp';
    const line = { name, description, version: version(), groups: commandGroups, commands: everyCommand(surroundings) };
    return runCommandLine({ ...line, print, printError }, args);
  }
  await (name === 'strata' ? runAsKcpProgram(first, rest, surroundings) : runAsKcpProgram(name, args, surroundings));
  return exitCodes.done;
}

function everyCommand(surroundings: ProgramSurroundings): readonly DeclaredCommand[] {
  const completion: DeclaredCommand = {
    words: ['completion'],
    operands: '<shell>',
    help: `Print the script by which a shell completes commands and flags: ${shells.join(', ')}`,
    options: [],
    run: async ({ operands: [text] }) => {
      const shell = shells.find((name) => name === text);
      if (shell === undefined) throw new SettingsError([`${JSON.stringify(text)} is none of ${shells.join(', ')}`]);
      surroundings.print(formatCompletion(shell, { name: 'strata', commands: everyCommand(surroundings) }));
    },
  };
  const serve: DeclaredCommand = {
    words: ['serve'],
    operands: '',
    help: 'Run a cache server',
    options: [{ ...configFileOption, placeholder: 'file', default: undefined }, ...Object.values(options)],
    run: ({ flags }) => runServer(surroundings, { sources: sourcesOf(surroundings, flags, {}), warnings: [] }),
  };
  const proxy: DeclaredCommand = {
    words: ['proxy'],
    operands: '',
    help: 'Run the front door of an installation, which sends each request to the shard that its path leads to',
    options: [{ ...configFileOption, placeholder: 'file', default: undefined }, ...Object.values(options), ...Object.values(proxyOptions)],
    run: ({ flags }) => runProxy(surroundings, { flags, warnings: [] }, {}),
  };
  /**
   * Listed only in the help. commander would read some of the upstream flags as its own, so `run`
   * never passes these commands to it.
   */
  const inPlaceHelp: readonly DeclaredCommand[] = Object.entries(kcpPrograms).map(([name, { what }]) => ({
    words: [name],
    operands: '',
    help: `Run a ${what} with the flags of kcp's own; --help lists them`,
    options: [],
    run: () => runAsKcpProgram(name, [], surroundings),
  }));
  return [serve, proxy, ...inPlaceHelp, ...commands.map((command) => command(surroundings)), completion];
}

type Flags = SettingsSources['flags'];
type Defaults = Readonly<Record<string, string>>;
type ReadFlags = Readonly<{ flags: Flags; warnings: readonly string[] }>;

type KcpProgram = Readonly<{
  what: string;
  table: UpstreamTable;
  run: (surroundings: ProgramSurroundings, read: ReadFlags) => Promise<void>;
}>;

const kcpPrograms: Readonly<Record<string, KcpProgram>> = {
  'cache-server': {
    what: 'cache server',
    table: cacheServerFlags,
    run: (surroundings, { flags, warnings }) =>
      runServer(surroundings, { sources: sourcesOf(surroundings, flags, cacheServerDefaults), warnings }),
  },
  'kcp-front-proxy': {
    what: 'front proxy',
    table: frontProxyFlags,
    run: (surroundings, read) => runProxy(surroundings, read, frontProxyDefaults),
  },
};

async function runAsKcpProgram(name: string, args: readonly string[], surroundings: ProgramSurroundings): Promise<void> {
  const program = kcpPrograms[name]!;
  const read = readUpstreamFlags(args, program.table);
  switch (read.kind) {
    case 'help':
      return surroundings.print(
        formatHelpOfFlags(name, `Runs strata in place of kcp's ${program.what}.`, describeUpstreamFlags(program.table)),
      );
    case 'version':
      return surroundings.print(`${version()}\n`);
    case 'refused':
      throw new SettingsError(read.problems);
    case 'read':
      return program.run(surroundings, read);
  }
}

async function runProxy(surroundings: ProgramSurroundings, { flags, warnings }: ReadFlags, defaults: Defaults): Promise<void> {
  const frontDoor = readCommandValues(proxyOptions, { flags, environment: surroundings.environment });
  const own: readonly string[] = Object.values(proxyOptions).map(({ flag }) => flag);
  const others = Object.fromEntries(Object.entries(flags).filter(([flag]) => !own.includes(flag)));
  const sources = { ...sourcesOf(surroundings, others, defaults), followed: followedByFrontDoor };
  return runServer(surroundings, { sources, warnings, frontDoor });
}

function sourcesOf({ environment }: ProgramSurroundings, flags: Flags, defaults: Defaults): SettingsSources {
  return { flags, defaults, environment, readFile: readRegularFile };
}
