/**
 * The type of a key or a scope: group and plural, and, for a type that a ClusterCachedResource
 * declares, the identity hash that distinguishes same-named resources. Built-in types have no identity: ''.
 */
export type Resource = Readonly<{ group: string; resource: string; identity: string }>;

/** `apiexports.apis.kcp.io`, as Kubernetes spells a group resource in its messages; the core group adds nothing. */
export function formatGroupResource({ group, resource }: Pick<Resource, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** The one text for a resource, usable as the key of a map: `instances.machines.svm.io:<identity>`. */
export function formatResource(resource: Resource): string {
  return `${formatGroupResource(resource)}:${resource.identity}`;
}

/** The `apiVersion` an object carries. kcp spells the core group `core` in cache URLs, never in objects. */
export function formatApiVersion(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}
