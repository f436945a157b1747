import { test } from '../../support/test.js';
import { policyCharactersOfTerminal, treeLines } from '../../../src/commands/tree-lines.js';
import type { TreeStatus } from '../../../src/domain/status.js';
import { aCertificate, aChildStatus, aParentStatus, aStatusReport, aTreeStatus } from '../../support/status-report.js';

const everything = '[{"types":["*"]}]';

const terminal = { policyCharactersMax: policyCharactersOfTerminal };

function linesOf(tree: TreeStatus | undefined, options = terminal): readonly string[] {
  return treeLines({ ...aStatusReport([]), tree }, options);
}

test('the tree is printed from the top down: the parent, the cache, its children', (t) => {
  t.deepEqual(linesOf(aTreeStatus()), [
    'parent c-0 at https://root:6443: connected 3m12s',
    '  received: up to 1234567000000000041; 3 of 3 slices current; digests compared 9 times, 41s ago; DIFFERED 1 time; 2 objects refused here; 3 claims of shards ignored',
    '  sending: 12 of 14 slices current; 3 changes and 2s behind; asked to resync 1 time',
    `  up: ${everything} at both ends`,
    `  down: ${everything} here; [] there`,
    'cache c-1, eu-1, strata 0.1.0, ready, resourceVersion 1234567000000000042, 1 hop below the root',
    'child east c-7: connected 3m12s from root:6443, strata 0.1.0',
    '  received: up to 1234567000000000041; 3 of 3 slices current; digests compared 9 times, 41s ago; DIFFERED 1 time; 2 objects refused here; 3 claims of shards ignored',
    '  sending: 12 of 14 slices current; 3 changes and 2s behind; asked to resync 1 time',
    `  up: ${everything} at both ends`,
    `  down: ${everything} here; [] there`,
    'child west c-8: away 2h',
    '  received: nothing yet; 0 of 0 slices current',
    '  up: [] here; not known there',
    '  down: [] here; not known there',
  ]);
});

test('an unreachable parent is printed with the reason, and the cache with its unknown parts', (t) => {
  const parent = aParentStatus({
    cacheId: null,
    connection: { kind: 'away', forMs: 5_000 },
    failures: 3,
    message: 'nothing listens there',
    sending: null,
  });

  const lines = linesOf(aTreeStatus({ parent, hops: null, children: [] }));

  t.is(lines[0], 'parent at https://root:6443: away 5s, 3 failures: nothing listens there');
  t.true(lines.at(-1)?.endsWith(', below an unknown root'));
});

test('a link that has sent everything is printed as such', (t) => {
  const sending = { slices: 2, current: 2, behind: 0, lagMs: 0, resynced: 0, refused: 1 };

  const lines = linesOf(aTreeStatus({ children: [aChildStatus({ sending })] }));

  t.true(lines.includes('  sending: 2 of 2 slices current; all changes sent; 1 slice not accepted in full'));
});

test('texts that another cache chose cannot move the cursor or fill a terminal', (t) => {
  const own = { up: `[${'x'.repeat(5_000)}]`, down: '[]' };
  const child = aChildStatus({ agent: '\u001b[2Jme', policies: { own, other: null } });

  const lines = linesOf(aTreeStatus({ children: [child] }));

  t.true(lines.some((line) => line.endsWith(', ?[2Jme')));
  t.true(lines.every((line) => line.length < 500));
});

test('output that is not for a terminal has every policy in full', (t) => {
  const own = { up: `[${'x'.repeat(5_000)}]`, down: '[]' };

  const lines = linesOf(aTreeStatus({ children: [aChildStatus({ policies: { own, other: null } })] }), { policyCharactersMax: Infinity });

  t.true(lines.includes(`  up: ${own.up} here; not known there`));
});

test('certificates in use are printed with the time until, or since, they expire', (t) => {
  const certificates = [aCertificate('serving', 40), { ...aCertificate('client-ca', -2), subject: 'CN=\u001b[2J' }];

  t.deepEqual(treeLines({ ...aStatusReport([]), certificates }, terminal).slice(-2), [
    'certificate serving /etc/strata/serving.crt (CN=serving): until 2027-01-01, 40d left',
    'certificate client-ca /etc/strata/client-ca.crt (CN=?[2J): until 2026-11-20, EXPIRED 2d ago',
  ]);
});
