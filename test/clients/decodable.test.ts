/**
 * Asks Go's own decoders, among them those of client-go's clients, about every case of
 * test/support/json. They must be able to read whatever the server stores, and must agree with the
 * recorded verdicts, which tests use where Go is missing. Needs `go` and the modules of go.mod;
 * skipped with a log line without them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { recordedVerdicts } from '../support/json/go-verdicts.js';
import { buildDecoders, goVerdicts } from './go-decoders.js';

test('client-go can list and watch whatever the server accepts, and its verdict on each case is the recorded one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-decode-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const built = await buildDecoders(folder);
  if ('why' in built) {
    t.log(`SKIPPED (the only test of Go’s decoders): ${built.why}`);
    t.pass();
    return;
  }

  const verdicts = await goVerdicts(built.program);

  t.deepEqual(
    Object.entries(verdicts.stored).filter(([, refusing]) => refusing !== ''),
    [],
  );
  t.deepEqual(verdicts, recordedVerdicts());
});
