import { test } from '../../support/test.js';
import { EqualFilters } from '../../../src/tree/filters/link-filters.js';
import { aPolicy } from '../../support/link-rules.js';

test('links with equal policies share one link filter, and other links have their own', (t) => {
  const equal = new EqualFilters();
  const one = equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=gold' }));

  t.is(equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=gold' })), one);
  t.not(equal.of(aPolicy({ labels: 'tier=gold' }), aPolicy({ types: ['*'] })), one);
  t.not(equal.of(aPolicy({ types: ['*'] }), aPolicy({ labels: 'tier=silver' })), one);
});

test('with more policies than are remembered, filters still let through the same objects', (t) => {
  const equal = new EqualFilters();
  const filters = Array.from({ length: 300 }, (_, i) => equal.of(aPolicy({ labels: `tier=${i}` }), aPolicy({ types: ['*'] })));

  const last = equal.of(aPolicy({ labels: 'tier=299' }), aPolicy({ types: ['*'] }));
  t.is(new Set(filters).size, 300);
  t.false(last.needsPaths);
});
