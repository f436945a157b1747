/**
 * Libraries in C beside this file, to be loaded into a server with LD_PRELOAD: they see or change
 * what it asks of the system.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { projectFile } from '../../support/project.js';

/**
 * The compiled library, in that folder. Undefined where there is no C compiler: the test is skipped
 * then.
 */
export function compiled(t: ExecutionContext, folder: string, name: string): string | undefined {
  const library = join(folder, `${name}.so`);
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, projectFile(`test/faults/machines/${name}.c`), '-ldl'], {
      stdio: 'pipe',
    });
    return library;
  } catch (error) {
    t.log(`SKIPPED: no C compiler here: ${(error as Error).message.split('\n')[0]}`);
    t.pass();
    return undefined;
  }
}
