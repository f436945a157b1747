/**
 * Objects as a shard's pusher sends them: whole, in the storage version. They are of built-in
 * types, and of one type that shards declare.
 */
import { Catalogue } from '../../src/domain/catalogue/catalogue.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import { compose } from '../../src/json/compose.js';
import { scanObject } from '../../src/json/object-text.js';
import type { ShardName } from '../../src/domain/shard.js';
import { formatApiVersion, type Resource } from '../../src/domain/resource.js';
import { aKey, type Place } from '../support/objects.js';
import type { ModelObject } from './model-rule.js';

/** Two cluster-scoped types that simulated pushers push. */
export const simResources: readonly Resource[] = ['apiexports', 'apiresourceschemas'].map((resource) => ({
  group: 'apis.kcp.io',
  resource,
  identity: '',
}));

/** The type that a shard declares; each shard has an identity of its own. */
export function declaredResource(shard: ShardName): Resource {
  return { group: 'machines.svm.io', resource: 'instances', identity: `of-${shard}` };
}

/** All types that a shard with a declared type may have. */
export function resourcesOf(shard: ShardName): readonly Resource[] {
  return [declaringResource, ...simResources, declaredResource(shard)];
}

const declaringResource: Resource = { group: 'cache.kcp.io', resource: 'clustercachedresources', identity: '' };

export type SimContent = Readonly<{
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  spec?: Readonly<Record<string, unknown>>;
  status?: Readonly<Record<string, unknown>>;
}>;

const catalogue = new Catalogue(kcpTypes);
const encoder = new TextEncoder();

export function aSimObject(place: Place, { labels = {}, annotations = {}, spec = {}, status }: SimContent = {}): ModelObject {
  const key = aKey(place);
  const { storageVersion: version, kind } = catalogue.find(key.resource, key.shard) ?? { storageVersion: 'v1', kind: 'Instance' };
  const text = {
    apiVersion: formatApiVersion(key.resource.group, version),
    kind,
    metadata: {
      name: key.name,
      uid: `${key.shard}-${key.cluster}-${key.name}`,
      creationTimestamp: '2026-11-21T00:00:00Z',
      labels,
      annotations: { ...annotations, 'kcp.io/cluster': key.cluster, 'kcp.io/shard': key.shard },
    },
    spec,
    status,
  };
  const scanned = scanObject(encoder.encode(JSON.stringify(text)), 100);
  return { key, body: compose(scanned, { place: key, apiVersion: text.apiVersion, version, metadata: {} }) };
}

/** The object by which a shard declares its type. */
export function aSimDeclaration(shard: ShardName): ModelObject {
  const { group, resource, identity } = declaredResource(shard);
  return aSimObject(
    { shard, name: resource, group: declaringResource.group, resource: declaringResource.resource },
    {
      labels: { visibility: 'public' },
      annotations: { 'cache.kcp.io/resource-kind': 'Instance', 'cache.kcp.io/resource-scope': 'Cluster' },
      spec: { group, resource, version: 'v1' },
      status: { identityHash: identity },
    },
  );
}
