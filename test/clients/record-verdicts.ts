/**
 * Asks Go's decoders again and records their verdicts beside the cases: `node
 * build/test/clients/record-verdicts.js`.
 */
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { verdictsFile } from '../support/json/go-verdicts.js';
import { buildDecoders, goVerdicts } from './go-decoders.js';

const folder = await mkdtemp(join(tmpdir(), 'strata-decode-'));
try {
  const built = await buildDecoders(folder);
  if ('why' in built) throw new Error(built.why);
  writeFileSync(verdictsFile, `${JSON.stringify(await goVerdicts(built.program), undefined, 1)}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
