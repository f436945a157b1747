/** Tests that need kubectl, all of a file on one server. Where kubectl is missing, each logs that it was skipped. */
import test, { type ExecutionContext } from 'ava';
import { StrataProcess } from '../support/strata-process.js';
import { installed } from './installed.js';

const lawMsMax = 60_000;

export type Law = (title: string, implementation: (t: ExecutionContext, strata: StrataProcess) => Promise<void>) => void;

/** Registers the hooks of the file. */
export function kubectlLaws(): Law {
  let server: StrataProcess | undefined;
  test.before('start a server', async (t) => {
    t.timeout(lawMsMax);
    if ((await installed('kubectl', 'version', '--client')) !== undefined) server = await StrataProcess.start();
  });
  test.after.always(async () => await server?.[Symbol.asyncDispose]());
  return (title, implementation) =>
    test.serial(title, async (t) => {
      if (server === undefined) {
        t.log('SKIPPED: kubectl is not installed');
        t.pass();
        return;
      }
      t.timeout(lawMsMax);
      await implementation(t, server);
    });
}
