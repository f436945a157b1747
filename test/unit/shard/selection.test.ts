import { test } from '../../support/test.js';
import { replicatedTypes, select, type Selected } from '../../../src/shard/selection.js';
import { readSourceObject } from '../../../src/kube/source-object.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';

const encoder = new TextEncoder();
const replicate = '"internal.kcp.io/replicate":"x"';

function selected(annotations: string, rest: string, { marked = false, systemClusters = [] as readonly string[] } = {}): Selected {
  const bytes = encoder.encode(`{"metadata":{"name":"a","annotations":{${annotations}}${rest}}}`);
  return select(readSourceObject(bytes), { marked, selectors: undefined, systemClusters: new Set(systemClusters) });
}

test('an object is pushed, kept, removed or ignored as kcp’s replication controller would do', (t) => {
  const acme = '"kcp.io/cluster":"acme"';
  const deleting = ',"deletionTimestamp":"2026-11-20T22:53:25Z"';
  const waiting = `${deleting},"finalizers":["x"]`;
  const cases: [Selected, string, string, Parameters<typeof selected>[2]][] = [
    ['put', acme, '', {}],
    ['put', acme, ',"finalizers":["x"]', {}],
    ['put', acme, ',"deletionTimestamp":null', {}],
    ['gone', acme, deleting, {}],
    ['gone', acme, `${deleting},"finalizers":[]`, {}],
    ['keep', acme, waiting, {}],
    ['gone', acme, '', { marked: true }],
    ['gone', `${acme},"internal.kcp.io/replicate":""`, '', { marked: true }],
    ['put', `${acme},${replicate}`, '', { marked: true }],
    ['keep', `${acme},${replicate}`, waiting, { marked: true }],
    ['gone', acme, waiting, { marked: true }],
    ['ignored', '"kcp.io/cluster":"system:shard"', '', {}],
    ['ignored', '"kcp.io/cluster":"system:admin"', deleting, { systemClusters: ['system:shard'] }],
    ['put', '"kcp.io/cluster":"system:shard"', '', { systemClusters: ['system:shard'] }],
  ];

  for (const [expected, annotations, rest, options] of cases) t.is(selected(annotations, rest, options), expected, annotations + rest);
});

test('every replicated type is a type of the cache, of the same kind and in a version that the cache serves', (t) => {
  t.is(replicatedTypes(kcpTypes).length, 18);
  for (const { group, version, resource, kind } of replicatedTypes(kcpTypes)) {
    const known = kcpTypes.find((type) => type.group === group && type.resource === resource);
    t.is(known?.kind, kind);
    t.true(known?.versions.some(({ name }) => name === version));
  }
});
