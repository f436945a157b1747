/**
 * Which objects of a shard are replicated, as kcp's own replication controller decides it: data and one function.
 *
 *                          in a sync          as a change
 *   put      it is pushed    put                put
 *   keep     as it was       put, no body       nothing      it is being deleted and waits for its finalizers
 *   gone     it leaves       nothing            delete       it is being deleted, or is not marked (any more)
 *   ignored  never ours      nothing            nothing      its logical cluster is one of the system's
 */
import { labelsOf, type Labels, type SourceObject } from '../kube/source-object.js';

/** One type of the shard. `identityOf`: the APIExport of kcp's own whose identity a request for all clusters must name. */
export type ReplicatedType = Readonly<{
  group: string;
  version: string;
  resource: string;
  kind: string;
  /** Whether only objects with a non-empty `internal.kcp.io/replicate` annotation are replicated. */
  marked: boolean;
  identityOf: string | undefined;
}>;

export type Selected = 'put' | 'keep' | 'gone' | 'ignored';

export type SelectionRule = Readonly<{
  marked: boolean;
  /** Logical clusters that are replicated although their name begins with `system:`; kcp does so with `system:shard` since September 2026. */
  systemClusters: ReadonlySet<string>;
  /** One of them must select an object; undefined: all do. */
  selectors: readonly Labels[] | undefined;
}>;

type Traits = Readonly<{ marked?: boolean; identityOf?: string }>;

/** The types of kcp of August 2026 (dac74f59), pkg/reconciler/cache/replication. One that a shard does not serve is waited for. */
// prettier-ignore
export const replicatedTypes: readonly ReplicatedType[] = [
  // Before all others, because it declares types.
  type('cache.kcp.io', 'v1alpha1', 'clustercachedresources', 'ClusterCachedResource'),
  type('cache.kcp.io', 'v1alpha1', 'clustercachedresourceendpointslices', 'ClusterCachedResourceEndpointSlice'),
  type('apis.kcp.io', 'v1alpha2', 'apiexports', 'APIExport'),
  type('apis.kcp.io', 'v1alpha1', 'apiexportendpointslices', 'APIExportEndpointSlice'),
  type('apis.kcp.io', 'v1alpha1', 'apiresourceschemas', 'APIResourceSchema'),
  type('apis.kcp.io', 'v1alpha1', 'apiconversions', 'APIConversion'),
  type('core.kcp.io', 'v1alpha1', 'logicalclusters', 'LogicalCluster', { marked: true }),
  type('core.kcp.io', 'v1alpha1', 'shards', 'Shard', { identityOf: 'shards.core.kcp.io' }),
  type('tenancy.kcp.io', 'v1alpha1', 'workspacetypes', 'WorkspaceType', { identityOf: 'tenancy.kcp.io' }),
  type('migration.kcp.io', 'v1alpha1', 'logicalclustermigrations', 'LogicalClusterMigration', { identityOf: 'migration.kcp.io' }),
  type('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', { marked: true }),
  type('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings', 'ClusterRoleBinding', { marked: true }),
  type('admissionregistration.k8s.io', 'v1', 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'),
  type('admissionregistration.k8s.io', 'v1', 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
  type('admissionregistration.k8s.io', 'v1', 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy'),
  type('admissionregistration.k8s.io', 'v1', 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding'),
  type('admissionregistration.k8s.io', 'v1', 'mutatingadmissionpolicies', 'MutatingAdmissionPolicy'),
  type('admissionregistration.k8s.io', 'v1', 'mutatingadmissionpolicybindings', 'MutatingAdmissionPolicyBinding'),
];

/** The controller has the same order: a lost mark counts before finalizers that are waited for. */
export function select(object: SourceObject, { marked, systemClusters, selectors }: SelectionRule): Selected {
  if (object.cluster.startsWith('system:') && !systemClusters.has(object.cluster)) return 'ignored';
  if (selectors !== undefined && !isSelected(object, selectors)) return 'gone';
  if (marked && !object.marked) return 'gone';
  if (!object.deleting) return 'put';
  return object.hasFinalizers ? 'keep' : 'gone';
}

function isSelected(object: SourceObject, selectors: readonly Labels[]): boolean {
  const own = labelsOf(object);
  return selectors.some((labels) => labels.every(([key, value]) => own.get(key) === value));
}

function type(group: string, version: string, resource: string, kind: string, { marked = false, identityOf }: Traits = {}): ReplicatedType {
  return { group, version, resource, kind, marked, identityOf };
}
