import { test } from '../../support/test.js';
import { collectionTarget, freshnessTarget, lookUpTarget, objectTarget } from '../../../src/lookup/object-ref.js';
import type { ObjectRef } from '../../../src/lookup/object-ref.js';
import { aRef } from '../../support/lookup/a-reader.js';

test('a reference becomes the path at which kcp would read the object, on any shard unless it names one', (t) => {
  const roles = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles', namespace: 'team' };

  t.is(objectTarget(aRef()), '/services/cache/shards/*/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports/one');
  t.is(objectTarget(aRef({ cluster: 'root:org', shard: 'amber' })).slice(0, 49), '/services/cache/shards/amber/clusters/root:org/ap');
  t.true(objectTarget(aRef({ ...roles, name: 'system:a b' })).endsWith('/v1/namespaces/team/roles/system%3Aa%20b'));
  t.true(
    collectionTarget(aRef({ group: '', version: 'v1', resource: 'configmaps', identity: 'abc' })).endsWith('/acme/api/v1/configmaps:abc'),
  );
  t.is(collectionTarget(aRef({ identity: '' })), collectionTarget(aRef()));
});

test('a reference that names nothing, or would lead elsewhere in a URL, is refused', (t) => {
  for (const [ref, why] of [
    [{ cluster: '*' }, /neither the name of a logical cluster nor a canonical path/],
    [{ cluster: 'root:org/../x' }, /neither the name/],
    [{ shard: '*' }, /not the name of a shard/],
    [{ name: '' }, /the name "" may not be empty/],
    [{ name: '..' }, /the name ".." may not be '..'/],
    [{ name: 'a/b' }, /may not contain '\/'/],
    [{ namespace: '.' }, /the namespace/],
    [{ group: '..' }, /the group/],
    [{ version: '' }, /the version/],
    [{ resource: 'a%2Fb' }, /the resource/],
    [{ identity: 'a/b' }, /the identity/],
  ] as const)
    for (const targetOf of [objectTarget, (each: ObjectRef) => lookUpTarget(each, 0)])
      t.throws(() => targetOf(aRef(ref)), { message: why });
});

test('the freshness of a type is requested by its names, and by identity and shard if they are given', (t) => {
  const type = { group: '', resource: 'configmaps' };

  t.is(freshnessTarget(type), '/services/cache/freshness?resource=configmaps');
  t.is(freshnessTarget({ ...type, identity: '' }), freshnessTarget(type));
  t.is(
    freshnessTarget({ group: 'machines.svm.io', resource: 'instances', identity: 'abc', shard: 'amber' }),
    '/services/cache/freshness?resource=instances&group=machines.svm.io&identity=abc&shard=amber',
  );
  t.is(freshnessTarget({ group: 'a&shard=b', resource: '#' }), '/services/cache/freshness?resource=%23&group=a%26shard%3Db');
});

test('a look-up uses every part of a reference, and asks for at most the age that a cache accepts', (t) => {
  const opening = '/services/cache/look-up?version=v1alpha2&resource=apiexports&cluster=acme&name=one&reportAgeMaxMs=';

  t.is(lookUpTarget(aRef(), 0), `${opening}0&group=apis.kcp.io`);
  t.is(
    lookUpTarget(aRef({ group: '', identity: 'abc', namespace: 'team', shard: 'amber' }), 1.5),
    `${opening}1&identity=abc&namespace=team&shard=amber`,
  );
  t.is(lookUpTarget(aRef({ identity: '' }), Infinity), `${opening}999999&group=apis.kcp.io`);
});
