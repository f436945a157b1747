/**
 * Tests that need kubectl; all tests of a file share one server. Without kubectl each is skipped
 * with a log line.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { StrataProcess } from '../support/strata-process.js';
import { installed } from './installed.js';
import { Kubectl } from './kubectl.js';

const startMsMax = 60_000;

/** `kubectl`: runs as the server's master at one place, shared by the file. */
export type Installed = Readonly<{ kubectl: Kubectl; strata: StrataProcess }>;

export type Law = (title: string, implementation: (t: ExecutionContext, installed: Installed) => Promise<void>) => void;

/** Registers the hooks of the file. `timeoutMs` is for each test. */
export function kubectlLaws({ timeoutMs = 60_000 } = {}): Law {
  let shared: Installed | undefined;
  test.before('start a server and write a kubeconfig', async (t) => {
    t.timeout(startMsMax);
    if ((await installed('kubectl', 'version', '--client')) === undefined) return;
    const strata = await StrataProcess.start();
    shared = { strata, kubectl: await Kubectl.create(strata) };
  });
  test.after.always(async () => await shared?.strata[Symbol.asyncDispose]());
  return (title, implementation) =>
    test.serial(title, async (t) => {
      if (shared === undefined) {
        t.log('SKIPPED: kubectl is not installed');
        t.pass();
        return;
      }
      t.timeout(timeoutMs);
      await implementation(t, shared);
    });
}
