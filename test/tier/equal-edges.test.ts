import test from 'ava';
import { EqualEdges } from '../../src/tier/equal-edges.js';
import { aPolicy } from '../support/edge-policies.js';

test('links whose policies say the same have one edge, others have their own', (t) => {
  const equal = new EqualEdges();
  const one = equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=gold' }));

  t.is(equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=gold' })), one);
  t.not(equal.of(aPolicy({ labels: 'tier=gold' }), aPolicy({ types: ['*'] })), one);
  t.not(equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=silver' })), one);
});

test('more policies than are remembered get edges that let through the same', (t) => {
  const equal = new EqualEdges();
  const edges = Array.from({ length: 300 }, (_, i) => equal.of(aPolicy({ labels: `tier=${i}` }), aPolicy({ types: ['*'] })));

  const last = equal.of(aPolicy({ labels: 'tier=299' }), aPolicy({ types: ['*'] }));
  t.is(new Set(edges).size, 300);
  t.false(last.asksPaths);
});
