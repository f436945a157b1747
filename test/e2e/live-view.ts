/** Asserts that a live kcp's RBAC decides who may read the view of an APIExport at a cache. */
import type { ExecutionContext } from 'ava';
import { KubeError, type KubeClient } from '../support/kube-client.js';
import type { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import type { Workspace } from './live-workspaces.js';

const group = 'machines.svm.io';
const rbac = 'rbac.authorization.k8s.io';
const settleMsMax = 60_000;
const schema = {
  type: 'object',
  properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
};
const names = { kind: 'Instance', listKind: 'InstanceList', plural: 'instances', singular: 'instance' };
const version = { name: 'v1', served: true, storage: true };

/**
 * `owner` caches its instances and exports them. `other` exports them as well, by naming their
 * identity, which kcp allows. `client` has all rights at kcp; `cache` runs with
 * `--view-callers=rbac`.
 */
export async function assertViewByRbac(
  t: ExecutionContext,
  { client, cache, owner, other }: Readonly<{ client: KubeClient; cache: StrataProcess; owner: Workspace; other: Workspace }>,
): Promise<void> {
  const create = (workspace: Workspace, path: string, kind: string, name: string, body: object): Promise<void> =>
    until(async () => {
      const apiVersion = path.split('/').slice(1, 3).join('/');
      const at = `/clusters/${workspace.path}/${path}`;
      return client.create(at, { apiVersion, kind, metadata: { name }, ...body }).then(
        () => true,
        // kcp serves a type only some time after it has its definition.
        (error: unknown) => error instanceof KubeError && error.reason === 'AlreadyExists',
      );
    }, settleMsMax);
  const custom = { spec: { group, names, scope: 'Cluster', versions: [{ ...version, schema: { openAPIV3Schema: schema } }] } };
  await create(owner, 'apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'CustomResourceDefinition', `instances.${group}`, custom);
  await create(owner, `apis/${group}/v1/instances`, 'Instance', 'one', { spec: {} });
  await create(owner, 'apis/cache.kcp.io/v1alpha1/clustercachedresources', 'ClusterCachedResource', 'instances', {
    spec: { group, version: 'v1', resource: 'instances' },
  });
  let identityHash = '';
  await until(async () => {
    const { status } = await client.get(`/clusters/${owner.path}/apis/cache.kcp.io/v1alpha1/clustercachedresources/instances`);
    identityHash = (status as { identityHash?: string } | undefined)?.identityHash ?? '';
    return identityHash !== '';
  }, settleMsMax);

  const users = { [owner.name]: 'alice', [other.name]: 'mallory' };
  for (const workspace of [owner, other]) {
    const described = { spec: { group, names, scope: 'Cluster', versions: [{ ...version, schema }] } };
    await create(workspace, 'apis/apis.kcp.io/v1alpha1/apiresourceschemas', 'APIResourceSchema', `v1.instances.${group}`, described);
    const reference = { apiGroup: 'cache.kcp.io', kind: 'ClusterCachedResourceEndpointSlice', name: 'instances' };
    const storage = { virtual: { reference, identityHash } };
    await create(workspace, 'apis/apis.kcp.io/v1alpha2/apiexports', 'APIExport', 'machines', {
      spec: { resources: [{ group, name: 'instances', schema: `v1.instances.${group}`, storage }] },
    });
    await create(workspace, `apis/${rbac}/v1/clusterroles`, 'ClusterRole', 'reads-machines', {
      rules: [
        { verbs: ['access'], nonResourceURLs: ['/'] },
        { verbs: ['get', 'list', 'watch'], apiGroups: ['apis.kcp.io'], resources: ['apiexports/content'], resourceNames: ['machines'] },
      ],
    });
    await create(workspace, `apis/${rbac}/v1/clusterrolebindings`, 'ClusterRoleBinding', 'reads-machines', {
      subjects: [{ apiGroup: rbac, kind: 'User', name: users[workspace.name] }],
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'reads-machines' },
    });
  }

  const [alice, mallory] = await Promise.all(
    ['alice', 'mallory'].map(async (user) => cache.client({ http2: true, as: cache.authority.issue({ user, groups: [] }) })),
  );
  const viewOf = ({ cluster }: Workspace): string => `/services/apiexport/${cluster}/machines/clusters/*/apis/${group}/v1/instances`;
  const shown = async (reader: KubeClient | undefined, workspace: Workspace): Promise<string> => {
    const { status, text } = (await reader?.raw('GET', viewOf(workspace))) ?? { status: 0, text: '' };
    if (status !== 200) return String(status);
    return (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name).join();
  };
  const becomes = async (reader: KubeClient | undefined, workspace: Workspace, expected: string, what: string): Promise<void> => {
    let seen = '';
    await until(async () => (seen = await shown(reader, workspace)) === expected, settleMsMax).catch(() => {});
    t.is(seen, expected, what);
  };
  await becomes(cache.client(), owner, 'one', 'masters see what the owner exports');
  await becomes(cache.client(), other, 'one', 'masters see what another workspace exports by naming the identity');
  await becomes(alice, owner, 'one', 'a user whom the owner’s RBAC lets in sees its export');
  await becomes(mallory, other, '', 'a user whom only the other workspace lets in sees nothing of the owner');
  t.is(await shown(alice, other), '403');
  t.is(await shown(mallory, owner), '403');
  await client.delete(`/clusters/${owner.path}/apis/${rbac}/v1/clusterrolebindings/reads-machines`);
  await becomes(alice, owner, '403', 'a user whose role binding was deleted is refused');
}
