/**
 * The types of kcp's cache server, and which of them kcp's shards replicate. Source: kcp main of
 * August 2026 (dac74f59), pkg/reconciler/cache/replication. An operator adds types by a file
 * (`config/files/types-file.ts`).
 *
 * Versions are in order of preference; the first is the storage version. Subresources and schemas
 * are left out, because a cache serves whole replicas and validates none. Columns, short names and
 * categories are those of kcp's and Kubernetes' definitions. A version without columns shows Name
 * and Age.
 */
import { plainType, type Column, type ServedVersion, type TableType } from './catalogue.js';

const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

function text(name: string, jsonPath: string, description?: string): Column {
  return { name, type: 'string', jsonPath, ...(description !== undefined && { description }) };
}

function count(name: string, jsonPath: string, description: string): Column {
  return { name, type: 'integer', jsonPath, description };
}

function version(name: string, ...columns: readonly Column[]): ServedVersion {
  return { name, columns };
}

type Traits = Partial<
  Pick<TableType, 'namespaced' | 'nameRule' | 'strategicMerge' | 'categories' | 'shortNames' | 'replicated' | 'identityOf'>
>;

const kcp: Traits = { categories: ['kcp'] };
/**
 * Names of RBAC objects may contain ':' and upper case (annotation internal.kcp.io/validate-name in
 * kcp's definitions).
 */
const rbac: Traits = { nameRule: 'path-segment', strategicMerge: true };
const admission: Traits = { strategicMerge: true, categories: ['api-extensions'] };

function type(
  group: string,
  resource: string,
  kind: string,
  traits: Traits,
  first: ServedVersion,
  ...others: readonly ServedVersion[]
): TableType {
  const plain = plainType({ group, resource, identity: '' }, kind, [first.name]);
  return { ...plain, versions: [first, ...others], replicated: 'always', identityOf: undefined, ...traits };
}

// One line for each type, which the formatter would break.
// prettier-ignore
export const kcpTypes: readonly TableType[] = [
  type('apis.kcp.io', 'apiresourceschemas', 'APIResourceSchema', kcp, version('v1alpha1', age)),
  type('apis.kcp.io', 'apiconversions', 'APIConversion', kcp, version('v1alpha1', age)),
  type('apis.kcp.io', 'apiexports', 'APIExport', kcp, version('v1alpha2', age), version('v1alpha1', age, text('Ready', '.status.conditions[?(@.type=="VirtualWorkspaceURLsReady")].status'))),
  type('apis.kcp.io', 'apiexportendpointslices', 'APIExportEndpointSlice', kcp, version('v1alpha1', text('Export', '.spec.export.name'), text('Partition', '.spec.partition'), age)),
  type('core.kcp.io', 'logicalclusters', 'LogicalCluster', { ...kcp, replicated: 'annotated' }, version('v1alpha1', text('Phase', '.status.phase', 'The current phase (e.g. Scheduling, Initializing, Ready, Deleting)'), text('URL', '.status.URL', 'URL to access the logical cluster'), age)),
  type('migration.kcp.io', 'logicalclustermigrations', 'LogicalClusterMigration', { ...kcp, identityOf: 'migration.kcp.io' }, version('v1alpha1', text('Logical Cluster', '.spec.logicalCluster', 'The logical cluster being migrated'), text('Phase', '.status.phase', 'The current phase of the migration'), text('Destination', '.spec.destinationShard', 'The destination shard'), count('Entries Copied', '.status.entriesCopied', 'Number of etcd entries copied so far'))),
  type('core.kcp.io', 'shards', 'Shard', { ...kcp, identityOf: 'shards.core.kcp.io' }, version('v1alpha1', text('Region', ".metadata.labels['region']", 'The region this workspace is in'), text('URL', '.spec.baseURL', 'Type URL to directly connect to the shard'), text('External URL', '.spec.externalURL', 'The URL exposed in logical clusters created on that shard'), age)),
  type('cache.kcp.io', 'cachedobjects', 'CachedObject', { ...kcp, replicated: 'never' }, version('v1alpha1', age)),
  type('cache.kcp.io', 'clustercachedresources', 'ClusterCachedResource', kcp, version('v1alpha1', text('Resource', '.spec.resource', 'Resource type being published'), age)),
  type('cache.kcp.io', 'clustercachedresourceendpointslices', 'ClusterCachedResourceEndpointSlice', kcp, version('v1alpha1', text('ClusterCachedResource', '.spec.clusterCachedResource.name'), age)),
  type('tenancy.kcp.io', 'workspacetypes', 'WorkspaceType', { ...kcp, identityOf: 'tenancy.kcp.io' }, version('v1alpha1')),
  type('rbac.authorization.k8s.io', 'roles', 'Role', { ...rbac, namespaced: true, replicated: 'never' }, version('v1')),
  type('rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole', { ...rbac, replicated: 'annotated' }, version('v1')),
  type('rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding', { ...rbac, namespaced: true, replicated: 'never' }, version('v1')),
  type('rbac.authorization.k8s.io', 'clusterrolebindings', 'ClusterRoleBinding', { ...rbac, replicated: 'annotated' }, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', admission, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingadmissionpolicies', 'MutatingAdmissionPolicy', admission, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingadmissionpolicybindings', 'MutatingAdmissionPolicyBinding', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', admission, version('v1')),
  // Shards never replicate these objects. But every shard waits until its informer on them has
  // synced, which needs the type.
  type('apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition', { categories: ['api-extensions'], shortNames: ['crd', 'crds'], replicated: 'never' }, version('v1')),
];
