/**
 * The type of a key or a scope: group and plural. The type that a ClusterCachedResource declares
 * also has the identity hash, which distinguishes same-named resources. The identity of a built-in
 * type is ''.
 */
export type Resource = Readonly<{ group: string; resource: string; identity: string }>;

/**
 * `apiexports.apis.kcp.io`: the group resource as Kubernetes writes it in messages. The core group
 * has no suffix.
 */
export function formatGroupResource({ group, resource }: Pick<Resource, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/**
 * The canonical text of a resource, usable as a map key: `instances.machines.svm.io:<identity>`.
 */
export function formatResource(resource: Resource): string {
  return `${formatGroupResource(resource)}:${resource.identity}`;
}

/**
 * The `apiVersion` of an object. kcp spells the core group `core` in cache URLs, never in objects.
 */
export function formatApiVersion(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}
