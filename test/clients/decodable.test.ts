/**
 * Go's own decoders, those of client-go's clients among them, on every case of test/support/json: what is stored here they can read, and
 * they say what was recorded, which the tests without Go go by. Needs `go` and the modules of go.mod; skipped aloud without them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { recordedVerdicts } from '../support/json/go-verdicts.js';
import { buildDecoders, goVerdicts } from './go-decoders.js';

test('client-go can list and watch whatever is accepted here, and says of each case what was recorded', async (t) => {
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
