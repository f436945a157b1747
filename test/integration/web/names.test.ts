import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { aClusterCachedResource, aPath, anApiExport } from '../../support/objects.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, type TestServer } from '../../support/test-server.js';

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const roles = { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', version: 'v1' };

function aRole(name: string): Record<string, unknown> {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, uid: `uid-of-${name}` }, rules: [] };
}

async function created(server: TestServer, path: string, object: unknown): Promise<string> {
  const { status, text } = await server.client().raw('POST', path, { body: object });
  const { message, details } = JSON.parse(text) as KubeStatus;
  return status === 201 ? '201' : `${status} ${message} ${JSON.stringify(details)}`;
}

function invalid(kind: string, group: string, name: string, flaw: string): string {
  const message = `Invalid value: ${JSON.stringify(name)}: ${flaw}`;
  const details = { name, group, kind, causes: [{ reason: 'FieldValueInvalid', message, field: 'metadata.name' }] };
  return `422 ${kind}.${group} ${JSON.stringify(name)} is invalid: metadata.name: ${message} ${JSON.stringify(details)}`;
}

test('the name of a kcp type is a DNS subdomain', async (t) => {
  const server = await aServer(t);

  for (const name of ['Bad Name!', 'Upper', 'a_b', '-a', 'a..b', 'system:a', 'ü'])
    t.is(await created(server, aPath(), anApiExport({ name })), invalid('APIExport', 'apis.kcp.io', name, subdomain));
  for (const name of ['a', 'tenancy.kcp.io', '0.b-c', 'a'.repeat(253)]) t.is(await created(server, aPath(), anApiExport({ name })), '201');
  t.is(
    await created(server, aPath(), anApiExport({ name: 'a'.repeat(254) })),
    invalid('APIExport', 'apis.kcp.io', 'a'.repeat(254), 'must be no more than 253 characters'),
  );
});

test('the name of an RBAC type is a path segment', async (t) => {
  const server = await aServer(t);
  const refused = [
    ['.', "may not be '.'"],
    ['..', "may not be '..'"],
    ['a/b', "may not contain '/'"],
    ['a%b', "may not contain '%'"],
  ] as const;

  for (const [name, flaw] of refused)
    t.is(await created(server, aPath(roles), aRole(name)), invalid('ClusterRole', roles.group, name, flaw));
  for (const name of ['system:kcp:Admin', 'Bad Name!', 'a_b']) t.is(await created(server, aPath(roles), aRole(name)), '201');
});

test('the name of a declared type is a DNS subdomain', async (t) => {
  const server = await aServer(t);
  const declarations = aPath({ group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1' });
  await server.client().create(declarations, aClusterCachedResource('hash'));
  const instances = aPath({ group: 'machines.svm.io', resource: 'instances', version: 'v1', identity: 'hash' });
  const instance = (name: string): unknown => ({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name } });

  t.is(await created(server, instances, instance('Bad Name!')), invalid('Instance', 'machines.svm.io', 'Bad Name!', subdomain));
  t.is(await created(server, instances, instance('good')), '201');
});

test('pushed objects follow the same rules, and a refused one does not affect the others', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);

  await pushes(
    t,
    pusher,
    'apiexports',
    [pushedExport('Bad Name!'), pushedExport('good')],
    [`Invalid: APIExport.apis.kcp.io "Bad Name!" is invalid: metadata.name: Invalid value: "Bad Name!": ${subdomain}`],
  );
  await pushes(
    t,
    pusher,
    'clusterroles',
    [pushedObject(aRole('a%b')), pushedObject(aRole('Bad Name!'))],
    [`Invalid: ClusterRole.rbac.authorization.k8s.io "a%b" is invalid: metadata.name: Invalid value: "a%b": may not contain '%'`],
  );

  const names = async (path: string): Promise<unknown> => (await server.client().list(path)).items.map(({ metadata }) => metadata.name);
  t.deepEqual(await names(aPath()), ['good']);
  t.deepEqual(await names(aPath(roles)), ['Bad Name!']);
});

async function pushes(
  t: ExecutionContext,
  pusher: RawPusher,
  resource: 'apiexports' | 'clusterroles',
  objects: Parameters<RawPusher['put']>[1],
  refusals: readonly string[],
): Promise<void> {
  const slice = sliceOf(resource, resource === 'clusterroles' ? { group: roles.group } : {});
  pusher.begin(slice);
  const frames = await pusher.acknowledged(pusher.put(slice, objects, resource === 'clusterroles' ? 'v1' : 'v1alpha2'));
  t.deepEqual(
    frames.flatMap((frame) => (frame.kind === 'refuse' ? [`${frame.reason}: ${frame.message}`] : [])),
    refusals,
  );
}
