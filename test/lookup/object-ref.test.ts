import test from 'ava';
import { collectionTarget, isOfType, objectTarget } from '../../src/lookup/object-ref.js';
import { aRef } from './a-reader.js';

test('a reference is read where kcp would read it, on any shard unless it names one', (t) => {
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
    [{ shard: '*' }, /no name of a shard/],
    [{ name: '' }, /the name "" may not be empty/],
    [{ name: '..' }, /the name ".." may not be '..'/],
    [{ name: 'a/b' }, /may not contain '\/'/],
    [{ namespace: '.' }, /the namespace/],
    [{ group: '..' }, /the group/],
    [{ version: '' }, /the version/],
    [{ resource: 'a%2Fb' }, /the resource/],
    [{ identity: 'a/b' }, /the identity/],
  ] as const)
    t.throws(() => objectTarget(aRef(ref)), { message: why });
});

test('a reference without identity covers every type of its name, one with identity that type only', (t) => {
  const type = { group: '', resource: 'configmaps', identity: 'abc' };

  t.true(isOfType({ group: '', resource: 'configmaps' }, type));
  t.true(isOfType({ group: 'core', resource: 'configmaps', identity: '' }, type));
  t.true(isOfType(type, type));
  t.false(isOfType({ ...type, identity: 'other' }, type));
  t.false(isOfType({ ...type, group: 'apps' }, type));
});
