/** Runs `strata …` as an operator does: as a process of its own, on the files of a server. */
import { execFile } from 'node:child_process';
import { builtMain } from '../../support/project.js';
import type { StrataProcess } from '../../support/strata-process.js';

/** `ended`: the exit code, or the signal that ended it; `printed`: stdout; `said`: stderr. */
type Ran = Readonly<{ ended: number | string; printed: string; said: string }>;

export function runStrata(
  server: Pick<StrataProcess, 'dataFolder'>,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const env = { ...process.env, STRATA_ROOT_DIRECTORY: server.dataFolder, ...environment };
    execFile(process.execPath, [builtMain(), ...words], { env }, (error, printed, said) =>
      resolve({ ended: error?.signal ?? error?.code ?? 0, printed, said }),
    );
  });
}
