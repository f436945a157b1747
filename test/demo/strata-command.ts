/** `strata …` as one types it, run in this process, because a process of its own would take longer to start than to do its work. */
import { systemClock } from '../../src/clock.js';
import { commandGroups, commands } from '../../src/commands/commands.js';
import { runCommandLine } from '../../src/config/command-line.js';
import { version } from '../../src/version.js';

/** Gives what it printed; throws its message when it fails. */
export async function strataCommand(words: readonly string[]): Promise<string> {
  let printed = '';
  const surroundings = {
    print: (text: string) => void (printed += text),
    isTerminal: false,
    environment: {},
    clock: systemClock,
    random: Math.random,
    logStream: process.stderr,
    untilStopped: () => new Promise<never>(() => {}),
  };
  const declared = commands.map((command) => command(surroundings));
  await runCommandLine({ name: 'strata', description: '', version: version(), groups: commandGroups, commands: declared }, words);
  return printed;
}
