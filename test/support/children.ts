/**
 * Starts child processes that end with the worker that started them, however the worker ends. A
 * failed test closes nothing, and its child would keep the worker, a port and memory.
 *
 *   the worker exits                        its `exit` handler kills the children
 *   it is killed, or its thread terminated   Linux kills them, because their parent thread has
 *                                           ended; on other systems they stay
 */
import { spawn as spawnChild, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Replaces itself with the program that it starts, so the child keeps its pid. */
const setpriv = '/usr/bin/setpriv';
const prefix: readonly string[] = process.platform === 'linux' && existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', '--'] : [];

/**
 * For `process.kill`, which with pid 0 signals every process of our own group: all tests and their
 * servers. Throws if the child does not run.
 */
export function pidOf(child: ChildProcess | undefined): number {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) throw new Error('the process does not run');
  return child.pid;
}

/** Has the signature of Node's `spawn`. The program is a path, or is found in PATH. */
export const spawn = ((program: string, args: readonly string[], options: object) => {
  const [command = program, ...rest] = [...prefix, program, ...args];
  const child = spawnChild(command, rest, options);
  children.add(child);
  child.once('exit', () => children.delete(child));
  child.once('error', () => children.delete(child));
  return child;
}) as typeof spawnChild;
