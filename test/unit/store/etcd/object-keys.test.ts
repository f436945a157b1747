import { test } from '../../../support/test.js';
import fc from 'fast-check';
import { formatObjectKey, parseObjectKey } from '../../../../src/store/etcd/object-keys.js';
import { aKey } from '../../../support/objects.js';

const identity = 'c0ffee'.padEnd(64, '0');

test('keys are the same as those of kcp’s own cache server', (t) => {
  for (const [text, place] of [
    ['/cache/apis.kcp.io/apiexports/customresources/amber/acme/e1', { name: 'e1' }],
    [
      '/cache/rbac.authorization.k8s.io/rolebindings/customresources/birch/root/ns1/rb',
      { group: 'rbac.authorization.k8s.io', resource: 'rolebindings', shard: 'birch', cluster: 'root', namespace: 'ns1', name: 'rb' },
    ],
    [
      '/cache/rbac.authorization.k8s.io/clusterroles/customresources/amber/system:admin/system:Read:All',
      { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', cluster: 'system:admin', name: 'system:Read:All' },
    ],
    [
      `/cache/machines.svm.io/instances/${identity}/amber/acme/i1`,
      { group: 'machines.svm.io', resource: 'instances', identity, name: 'i1' },
    ],
    [`/cache/apps/deployments/${identity}/amber/acme/d1`, { group: 'apps', resource: 'deployments', identity, name: 'd1' }],
    [`/cache/pods/${identity}/amber/acme/default/p1`, { group: '', resource: 'pods', identity, namespace: 'default', name: 'p1' }],
    [`/cache/nodes/${identity}/amber/acme/n1`, { group: '', resource: 'nodes', identity, name: 'n1' }],
    [
      '/cache/machines.svm.io/instances/0123abcd/amber/acme/i1',
      { group: 'machines.svm.io', resource: 'instances', identity: '0123abcd', name: 'i1' },
    ],
    ['/cache/pods/0123abcd/amber/acme/default/p1', { group: '', resource: 'pods', identity: '0123abcd', namespace: 'default', name: 'p1' }],
  ] as const) {
    t.is(formatObjectKey('/cache', aKey(place)), text);
    t.deepEqual(parseObjectKey('/cache', text), aKey(place), text);
  }
});

test('a text that is no object’s key is not parsed as one', (t) => {
  for (const text of [
    '/cache',
    '/cache/',
    '/cachex/apis.kcp.io/apiexports/customresources/amber/acme/e1',
    '/cache/apiextensions.k8s.io/customresourcedefinitions/system:cache:server/system:system-crds/a.b',
    '/cache/apis.kcp.io/apiexports/customresources/amber',
    '/cache/apis.kcp.io/apiexports/customresources/amber/acme/',
    '/cache/apis.kcp.io/apiexports/customresources/amber/acme/a/b/c',
    '/cache/apis.kcp.io/apiexports/customresources/AMBER/acme/e1',
    '/cache/apis.kcp.io/apiexports/customresources/amber/root:org/e1',
    '/cache//apiexports/customresources/amber/acme/e1',
  ])
    t.is(parseObjectKey('/cache', text), undefined, text);
});

test('every key can be read back from its text', (t) => {
  const segment = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/);
  const digits = fc.stringMatching(/^[0-9a-f]{64}$/);
  const place = fc.record({
    group: fc.oneof(
      fc.constant(''),
      segment,
      fc.tuple(segment, segment).map((names) => names.join('.')),
    ),
    resource: segment,
    shard: fc.oneof(segment, fc.constant('customresources')),
    cluster: segment,
    namespace: fc.oneof(fc.constant(''), segment),
    name: fc.stringMatching(/^[^/\s]{1,20}$/),
    identity: fc.oneof(fc.constant(''), digits),
  });
  fc.assert(
    fc.property(place, (of) => {
      const key = aKey(of);
      t.deepEqual(parseObjectKey('/cache', formatObjectKey('/cache', key)), key);
    }),
  );
});
