/**
 * The types of kcp's cache server, as of kcp main of August 2026 (dac74f59). Adding a type is a line of data.
 *
 * Versions stand in order of preference; the first is the storage version. Subresources and schemas are left out on
 * purpose: a cache serves whole replicas and validates none. Columns, short names and categories are those of kcp's own
 * definitions; a version without columns shows Name and Age. Of kcp's types only workspaces have a short name there, and no
 * cache has workspaces; that of definitions is Kubernetes' own.
 */
import type { Column, ServedType, ServedVersion } from './catalogue.js';

const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

/** A column of text. */
function text(name: string, jsonPath: string, description?: string): Column {
  return { name, type: 'string', jsonPath, ...(description !== undefined && { description }) };
}

function count(name: string, jsonPath: string, description: string): Column {
  return { name, type: 'integer', jsonPath, description };
}

function version(name: string, ...columns: readonly Column[]): ServedVersion {
  return { name, columns };
}

type Traits = Partial<Pick<ServedType, 'namespaced' | 'nameRule' | 'strategicMerge' | 'categories' | 'shortNames'>>;

const plain: Required<Traits> = { namespaced: false, nameRule: 'subdomain', strategicMerge: false, categories: [], shortNames: [] };
const kcp: Traits = { categories: ['kcp'] };
/** Names of RBAC objects hold ':' and upper case (annotation internal.kcp.io/validate-name in kcp's definitions). */
const rbac: Traits = { nameRule: 'path-segment', strategicMerge: true };
const admission: Traits = { strategicMerge: true, categories: ['api-extensions'] };

function type(
  group: string,
  resource: string,
  kind: string,
  traits: Traits,
  first: ServedVersion,
  ...others: readonly ServedVersion[]
): ServedType {
  return {
    ...plain,
    ...traits,
    group,
    resource,
    identity: '',
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    versions: [first, ...others],
    storageVersion: first.name,
  };
}

// One line, one type: the formatter leaves them alone.
// prettier-ignore
export const kcpTypes: readonly ServedType[] = [
  type('apis.kcp.io', 'apiresourceschemas', 'APIResourceSchema', kcp, version('v1alpha1', age)),
  type('apis.kcp.io', 'apiconversions', 'APIConversion', kcp, version('v1alpha1', age)),
  type('apis.kcp.io', 'apiexports', 'APIExport', kcp, version('v1alpha2', age), version('v1alpha1', age, text('Ready', '.status.conditions[?(@.type=="VirtualWorkspaceURLsReady")].status'))),
  type('apis.kcp.io', 'apiexportendpointslices', 'APIExportEndpointSlice', kcp, version('v1alpha1', text('Export', '.spec.export.name'), text('Partition', '.spec.partition'), age)),
  type('core.kcp.io', 'logicalclusters', 'LogicalCluster', kcp, version('v1alpha1', text('Phase', '.status.phase', 'The current phase (e.g. Scheduling, Initializing, Ready, Deleting)'), text('URL', '.status.URL', 'URL to access the logical cluster'), age)),
  type('migration.kcp.io', 'logicalclustermigrations', 'LogicalClusterMigration', kcp, version('v1alpha1', text('Logical Cluster', '.spec.logicalCluster', 'The logical cluster being migrated'), text('Phase', '.status.phase', 'The current phase of the migration'), text('Destination', '.spec.destinationShard', 'The destination shard'), count('Entries Copied', '.status.entriesCopied', 'Number of etcd entries copied so far'))),
  type('core.kcp.io', 'shards', 'Shard', kcp, version('v1alpha1', text('Region', ".metadata.labels['region']", 'The region this workspace is in'), text('URL', '.spec.baseURL', 'Type URL to directly connect to the shard'), text('External URL', '.spec.externalURL', 'The URL exposed in logical clusters created on that shard'), age)),
  type('cache.kcp.io', 'cachedobjects', 'CachedObject', kcp, version('v1alpha1', age)),
  type('cache.kcp.io', 'clustercachedresources', 'ClusterCachedResource', kcp, version('v1alpha1', text('Resource', '.spec.resource', 'Resource type being published'), age)),
  type('cache.kcp.io', 'clustercachedresourceendpointslices', 'ClusterCachedResourceEndpointSlice', kcp, version('v1alpha1', text('ClusterCachedResource', '.spec.clusterCachedResource.name'), age)),
  type('tenancy.kcp.io', 'workspacetypes', 'WorkspaceType', kcp, version('v1alpha1')),
  type('rbac.authorization.k8s.io', 'roles', 'Role', { ...rbac, namespaced: true }, version('v1')),
  type('rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole', rbac, version('v1')),
  type('rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding', { ...rbac, namespaced: true }, version('v1')),
  type('rbac.authorization.k8s.io', 'clusterrolebindings', 'ClusterRoleBinding', rbac, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', admission, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingadmissionpolicies', 'MutatingAdmissionPolicy', admission, version('v1')),
  type('admissionregistration.k8s.io', 'mutatingadmissionpolicybindings', 'MutatingAdmissionPolicyBinding', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy', admission, version('v1')),
  type('admissionregistration.k8s.io', 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', admission, version('v1')),
  // Every shard waits for an informer on definitions; the list may well stay empty.
  type('apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition', { categories: ['api-extensions'], shortNames: ['crd', 'crds'] }, version('v1')),
];
