/**
 * A command of the command line: its options and its work. It reaches the process only through its
 * surroundings.
 */
import type { Called, DeclaredCommand } from '../config/command-line/command-line.js';
import { readCommandValues, type CommandOptions, type CommandValues } from '../config/command-line/command-values.js';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';

export type Surroundings = Readonly<{
  /** Prints answers. Errors are thrown, not printed. */
  print: (text: string) => void;
  isTerminal: boolean;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  /** Returns a number in [0, 1). */
  random: () => number;
  /** The stream to which commands that run until stopped write their log. */
  logStream: NodeJS.WritableStream;
  /** Resolves with the signal that stops the command. After the call a crash is logged. */
  untilStopped: (log: Log) => Promise<string>;
}>;

/** A command before the program gives it its surroundings. */
export type Command = (surroundings: Surroundings) => DeclaredCommand;

type Declaration<Options extends CommandOptions> = Readonly<{
  words: DeclaredCommand['words'];
  operands: string;
  help: string;
  options: Options;
  exitCodes?: DeclaredCommand['exitCodes'];
  /** Like `run` of a DeclaredCommand. */
  run: (
    called: Readonly<{ operands: Called['operands']; options: CommandValues<Options> }>,
    surroundings: Surroundings,
  ) => ReturnType<DeclaredCommand['run']>;
}>;

export function command<const Options extends CommandOptions>({ options, run, ...declared }: Declaration<Options>): Command {
  return (surroundings) => ({
    ...declared,
    options: Object.values(options),
    run: async ({ operands, flags }) => {
      const values = readCommandValues(options, { flags, environment: surroundings.environment });
      return run({ operands, options: values }, surroundings);
    },
  });
}
