import test from 'ava';
import { childOf, childNeighbour, flows, type Neighbour, type Via } from '../../src/domain/via.js';

const [c, d] = [childNeighbour('c'), childNeighbour('d')];

test('what a cache has of a shard goes everywhere but back to where it came from', (t) => {
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

test('a child is told from the parent and from local by its via, whatever it is called', (t) => {
  for (const name of ['a', 'local', 'parent', 'child']) t.is(childOf(childNeighbour(name)), name);
  t.is(childOf('local'), undefined);
  t.is(childOf('parent'), undefined);
});
