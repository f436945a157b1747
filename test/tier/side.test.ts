import test from 'ava';
import { childOf, childSide, flows, type LinkSide, type Side } from '../../src/domain/side.js';

const [c, d] = [childSide('c'), childSide('d')];

test('what a cache has of a shard goes everywhere but back to where it came from', (t) => {
  const table: readonly (readonly [Side | undefined, LinkSide, boolean])[] = [
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
  for (const [side, to, goes] of table) t.is(flows(side, to), goes, `${side ?? 'none'} to ${to}`);
});

test('a child is told from the parent and from local by its side, whatever it is called', (t) => {
  for (const name of ['a', 'local', 'parent', 'child']) t.is(childOf(childSide(name)), name);
  t.is(childOf('local'), undefined);
  t.is(childOf('parent'), undefined);
});
