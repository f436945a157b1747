import { programResult } from '../support/commands/run-program.js';

/**
 * `strata …` as one types it, in this process, because a process of its own would take longer to start than to do its work. Gives what it printed; throws its
 * message when it fails.
 */
export async function strataCommand(words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await programResult(words);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}
