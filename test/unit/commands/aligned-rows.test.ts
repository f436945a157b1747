/**
 * A name that a neighbour or a shard chose stays in its cell of a table. It moves no cursor, begins
 * no row, and reverses no text.
 */
import { alignedRows } from '../../../src/commands/terminal-text.js';
import { formatCaches } from '../../../src/commands/caches.js';
import { test } from '../../support/test.js';

const forged = 'id\u001b[2J\nparent   root\u0085\u2028\u202ex';
const harmless = 'id?[2J?parent   root???x';

test('a cell of a table is one line, and its characters keep their order', (t) => {
  t.is(
    alignedRows([
      ['A', 'B'],
      [forged, 'b'],
    ]),
    `${'A'.padEnd(harmless.length)}   B\n${harmless}   b`,
  );
});

test('a table may have as many rows as a cache has slices', (t) => {
  const rows = Array.from({ length: 200_000 }, () => ['ab', 'c']);
  t.is(alignedRows(rows).length, 200_000 * 'ab   c\n'.length - 1);
});

test('the table of caches has one row for each cache, whatever id a child has', (t) => {
  const shown = formatCaches([
    { cache: 'child/west', id: forged, connection: { kind: 'connected', forMs: 1_000, peer: '' }, shards: 0, objects: 0, claims: 0 },
  ]);
  t.is(shown.trimEnd().split(/[\n\r\u0085\u2028]/).length, 2);
  t.false(['\u001b', '\u202e'].some((each) => shown.includes(each)));
});
