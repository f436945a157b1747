import { test } from '../../support/test.js';
import type { Located } from '../../../src/domain/revision.js';
import { needsNewest, type Verb } from '../../../src/web/kube/kube-request.js';

const revisions = { locate: (text: string): Located => (Number(text) > 10 ? { kind: 'above' } : { kind: 'ours', revision: Number(text) }) };

const cases: readonly [verb: Verb, query: string, waits: boolean][] = [
  ['get', '', true],
  ['get', 'resourceVersion=0', false],
  ['get', 'resourceVersion=10', false],
  ['get', 'resourceVersion=11', true],
  ['list', 'resourceVersion=', true],
  ['list', 'resourceVersion=0&limit=500', false],
  ['list', 'resourceVersion=7&resourceVersionMatch=Exact', false],
  ['list', 'continue=abc', true],
  ['list', 'resourceVersion=none', false],
  ['watch', 'resourceVersion=10', false],
  ['watch', 'resourceVersion=11', true],
  ['watch', 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan', true],
  ['update', 'resourceVersion=0', true],
  ['patch', '', true],
  ['delete', '', true],
  ['deletecollection', '', true],
  ['create', '', false],
  ['create', 'dryRun=All', true],
];

for (const [verb, query, waits] of cases)
  test(`${verb} ?${query} ${waits ? 'waits until this server has published what others have written' : 'is answered from what this server has published'}`, (t) => {
    t.is(needsNewest(verb, new URLSearchParams(query), revisions), waits);
  });
