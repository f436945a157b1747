/**
 * Processes that tests start. Each ends with the worker that started it, however that ends: a failed test disposes of nothing, and a child would keep its
 * worker, its port and its memory.
 *
 *   the worker exits            its `exit` handler kills them
 *   it is killed, or its thread is terminated       Linux kills them, because their parent thread is gone; elsewhere they stay
 */
import { spawn as spawnChild, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Becomes the program that it is given, so that the child has the same pid. */
const setpriv = '/usr/bin/setpriv';
const prefix: readonly string[] = process.platform === 'linux' && existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', '--'] : [];

/** As Node's. The program is a path, or in PATH. */
export const spawn = ((program: string, args: readonly string[], options: object) => {
  const [command = program, ...rest] = [...prefix, program, ...args];
  const child = spawnChild(command, rest, options);
  children.add(child);
  child.once('exit', () => children.delete(child));
  child.once('error', () => children.delete(child));
  return child;
}) as typeof spawnChild;
