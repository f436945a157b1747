import { test } from '../../support/test.js';
import { resume, type SliceKnowledge } from '../../../src/sender/resume.js';

const cacheId = 'cache-a';
const whole: SliceKnowledge = { open: true, syncedAt: cacheId };

const table: readonly Readonly<{ law: string; known: SliceKnowledge; syncedThere?: boolean; decided: 'go on' | 'sync' }>[] = [
  { law: 'a slice that both sides know to be synced goes on', known: whole, decided: 'go on' },
  { law: 'a slice that the cache does not name as synced is synced', known: whole, syncedThere: false, decided: 'sync' },
  {
    law: 'a slice that was synced at another cache is synced',
    known: { ...whole, syncedAt: 'cache-b' },
    decided: 'sync',
  },
  {
    law: 'a slice whose begin was sent and whose end is not acknowledged is synced',
    known: { ...whole, syncedAt: undefined },
    decided: 'sync',
  },
  { law: 'a slice whose source is not read is synced', known: { ...whole, open: false }, decided: 'sync' },
];

for (const { law, known, syncedThere = true, decided } of table) {
  test(law, (t) => {
    t.is(resume(known, { cacheId, syncedThere }), decided);
  });
}
