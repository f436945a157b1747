/**
 * Compiles the C libraries beside this file. A server loads them with LD_PRELOAD, and they record
 * or change its system calls.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { projectFile } from '../../support/project.js';

/** The path of the library in `folder`; undefined without a C compiler: the test then passes. */
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
