/**
 * The recorded objects, distributed to the shards amber and birch and to two tenants, so that
 * policies have something to decide:
 *
 *   the workspace root                   on amber   no tenant's: its exports are for everybody
 *   workspaces recorded below it         in turn of tenant-a, on amber, and of tenant-b, on birch
 *   what the second shard had recorded   on birch
 *
 * Exports are marked as public, except those of tenant-b. Bodies are as recorded, except for these
 * annotations.
 */
import type { KubeObject } from '../support/kube-client.js';
import type { RecordedObject } from './recorded-shards.js';

export type Tenant = 'tenant-a' | 'tenant-b';

export type DealtObject = RecordedObject &
  Readonly<{
    /** Undefined: the object belongs to no known tenant. */
    tenant: Tenant | undefined;
    /** Such as `apiexports.apis.kcp.io`. */
    type: string;
    isPublic: boolean;
    /** Its name in any cache: `amber/root/apiexports.apis.kcp.io/NAME`. */
    id: string;
  }>;

const tenants = ['tenant-a', 'tenant-b'] as const;
const firstRecorded = 'root';

export function dealObjects(objects: readonly RecordedObject[]): readonly DealtObject[] {
  const tenantOf = new Map<string, Tenant>();
  const clusterTenant = new Map<string, Tenant>();
  for (const { collection, object } of objects) {
    const workspace = workspaceOf(object);
    if (workspace === undefined) continue;
    const tenant = tenantOf.get(workspace) ?? tenants[tenantOf.size % tenants.length];
    if (tenant === undefined) continue;
    tenantOf.set(workspace, tenant);
    clusterTenant.set(clusterOf(collection), tenant);
  }
  return objects.map((recorded) => deal(recorded, clusterTenant.get(clusterOf(recorded.collection))));
}

/** The name of an object that a list of `collection` shows. */
export function idOf(collection: string, { metadata: { name, namespace = '', annotations = {} } }: KubeObject): string {
  return [annotations['kcp.io/shard'], annotations['kcp.io/cluster'], typeOf(collection), namespace, name].join('/');
}

function deal({ shard: recordedOn, collection, object }: RecordedObject, tenant: Tenant | undefined): DealtObject {
  const shard = recordedOn === firstRecorded && tenant !== 'tenant-b' ? 'amber' : 'birch';
  const type = typeOf(collection);
  const isPublic = type === 'apiexports.apis.kcp.io' && tenant !== 'tenant-b';
  const path = object.metadata.annotations?.['kcp.io/path'];
  const annotations = {
    ...object.metadata.annotations,
    'kcp.io/shard': shard,
    ...(path === undefined || tenant === undefined ? {} : { 'kcp.io/path': path.replace(/^root:/, `root:${tenant}:`) }),
    ...(isPublic ? { 'example.io/visibility': 'public' } : {}),
  };
  const dealt = { ...object, metadata: { ...object.metadata, annotations } };
  const place = collection.replace(/\/shards\/[^/]+\//, `/shards/${shard}/`);
  return { shard, collection: place, object: dealt, tenant, type, isPublic, id: idOf(place, dealt) };
}

/** The first workspace below root; undefined if the object has no path. */
function workspaceOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.['kcp.io/path']?.split(':')[1];
}

function clusterOf(collection: string): string {
  return /\/clusters\/([^/]+)\//.exec(collection)?.[1] ?? '';
}

function typeOf(collection: string): string {
  const [, group = '', type = ''] = /\/apis\/([^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)$/.exec(collection) ?? [];
  return `${type}.${group}`;
}
