import test from 'ava';
import { resume, type SliceKnowledge } from '../../src/sender/resume.js';

const cacheId = 'cache-a';
const whole: SliceKnowledge = { open: true, statedAt: cacheId };

const table: readonly Readonly<{ law: string; known: SliceKnowledge; statedThere?: boolean; decided: 'go on' | 'state' }>[] = [
  { law: 'a slice that both sides know to be stated goes on', known: whole, decided: 'go on' },
  { law: 'a slice that the cache does not name as stated is stated', known: whole, statedThere: false, decided: 'state' },
  {
    law: 'a slice that was stated at another cache is stated',
    known: { ...whole, statedAt: 'cache-b' },
    decided: 'state',
  },
  {
    law: 'a slice whose begin was sent and whose end is not acknowledged is stated',
    known: { ...whole, statedAt: undefined },
    decided: 'state',
  },
  { law: 'a slice whose source is not read is stated', known: { ...whole, open: false }, decided: 'state' },
];

for (const { law, known, statedThere = true, decided } of table) {
  test(law, (t) => {
    t.is(resume(known, { cacheId, statedThere }), decided);
  });
}
