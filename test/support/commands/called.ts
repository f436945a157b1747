/** Calls a command as the command line does, and records what it prints. */
import type { Command, Surroundings } from '../../../src/commands/command.js';
import { systemClock } from '../../../src/clock.js';

export type Call = Readonly<{
  operands?: readonly string[];
  flags?: Readonly<Record<string, string>>;
  environment?: Readonly<Record<string, string>>;
  surroundings?: Partial<Surroundings>;
}>;

export async function called(command: Command, { operands = [], flags = {}, environment = {}, surroundings = {} }: Call): Promise<string> {
  let printed = '';
  const declared = command({
    print: (text) => void (printed += text),
    isTerminal: false,
    environment,
    clock: systemClock,
    random: Math.random,
    logStream: process.stderr,
    untilStopped: () => new Promise(() => {}),
    ...surroundings,
  });
  await declared.run({ operands, flags });
  return printed;
}
