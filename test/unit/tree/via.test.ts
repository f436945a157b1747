import { test } from '../../support/test.js';
import { childOf, childNeighbour, flows, type Neighbour, type Via } from '../../../src/domain/via.js';

const [c, d] = [childNeighbour('c'), childNeighbour('d')];

test('a cache sends the objects of a shard to all neighbours except their via', (t) => {
  const table: readonly (readonly [Via | undefined, Neighbour, boolean])[] = [
    ['local', 'parent', true],
    ['local', d, true],
    [c, 'parent', true],
    [c, d, true],
    [c, c, false],
    ['parent', 'parent', false],
    ['parent', d, true],
    [undefined, 'parent', false],
    [undefined, d, false],
  ];
  for (const [via, to, goes] of table) t.is(flows(via, to), goes, `${via ?? 'none'} to ${to}`);
});

test('the via of a child names the child, whatever its name; local and parent name none', (t) => {
  for (const name of ['a', 'local', 'parent', 'child']) t.is(childOf(childNeighbour(name)), name);
  t.is(childOf('local'), undefined);
  t.is(childOf('parent'), undefined);
});
