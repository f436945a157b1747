import { programResult } from '../support/commands/run-program.js';

/**
 * Runs `strata …` as a user types it, but in this process: starting another one would take longer
 * than its work. Returns what it printed; throws its message when it fails.
 */
export async function strataCommand(words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await programResult(words);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}
