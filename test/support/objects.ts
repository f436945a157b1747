/** Objects to test with, as the store holds them: real text, composed as a write composes it. */
import { parseCanonicalPath, parseClusterName, type ClusterName } from '../../src/domain/cluster.js';
import { compose } from '../../src/json/compose.js';
import type { Key } from '../../src/domain/key.js';
import type { Mutation } from '../../src/domain/mutation.js';
import { scanObject } from '../../src/json/object-text.js';
import type { Body } from '../../src/domain/object.js';
import type { Scope } from '../../src/domain/scope.js';
import { parseShardName, type ShardName } from '../../src/domain/shard.js';

export type Place = Readonly<{
  shard?: string;
  cluster?: string;
  namespace?: string;
  name?: string;
  group?: string;
  resource?: string;
  identity?: string;
}>;

export function shardName(text: string): ShardName {
  const name = parseShardName(text);
  if (name === undefined) throw new Error(`${text} is not a shard name`);
  return name;
}

export function clusterName(text: string): ClusterName {
  const name = parseClusterName(text);
  if (name === undefined) throw new Error(`${text} is not a cluster name`);
  return name;
}

export function aKey(place: Place = {}): Key {
  const {
    shard = 'amber',
    cluster = 'acme',
    namespace = '',
    name = 'one',
    group = 'apis.kcp.io',
    resource = 'apiexports',
    identity = '',
  } = place;
  return { resource: { group, resource, identity }, shard: shardName(shard), cluster: clusterName(cluster), namespace, name };
}

export function aScope(place: Place = {}): Scope {
  const { shard = '*', cluster = '*', group = 'apis.kcp.io', resource = 'apiexports', identity = '', namespace, name } = place;
  return {
    group,
    resource,
    identity,
    shard: shard === '*' ? '*' : shardName(shard),
    cluster: cluster === '*' ? '*' : clusterName(cluster),
    namespace,
    name,
  };
}

export type Content = Readonly<{ annotations?: Record<string, string>; labels?: Record<string, string>; path?: string; spec?: unknown }>;

export function aBody(key: Key, content: Content = {}): Body {
  const { annotations = {}, labels, path, spec = {} } = content;
  const text = {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: {
      name: key.name,
      ...(key.namespace === '' ? {} : { namespace: key.namespace }),
      annotations: {
        'kcp.io/cluster': key.cluster,
        'kcp.io/shard': key.shard,
        ...(path === undefined ? {} : { 'kcp.io/path': path }),
        ...annotations,
      },
      ...(labels === undefined ? {} : { labels }),
    },
    spec,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(text));
  return compose(scanObject(bytes, 100), { place: key, apiVersion: text.apiVersion, version: 'v1alpha2', metadata: {} });
}

export function aPut(place: Place, expect: 'absent' | number, content: Content = {}): Mutation & { kind: 'put' } {
  const key = aKey(place);
  return {
    kind: 'put',
    key,
    body: aBody(key, content),
    path: content.path === undefined ? undefined : parseCanonicalPath(content.path),
    expect,
  };
}

export function aDelete(place: Place, expect: 'any' | number = 'any'): Mutation {
  return { kind: 'delete', key: aKey(place), expect };
}

/** The URL of a collection, or of one of its objects. */
export function aPath(place: Place & { version?: string } = {}): string {
  const {
    shard = 'amber',
    cluster = 'acme',
    namespace,
    name,
    group = 'apis.kcp.io',
    resource = 'apiexports',
    identity = '',
    version = 'v1alpha2',
  } = place;
  const api = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const inNamespace = namespace === undefined ? '' : `/namespaces/${namespace}`;
  return `/services/cache/shards/${shard}/clusters/${cluster}${api}${inNamespace}/${resource}${identity === '' ? '' : `:${identity}`}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
}

/** An APIExport as a client sends it. */
export function anApiExport(
  metadata: Readonly<Record<string, unknown>> = {},
  rest: Readonly<Record<string, unknown>> = { spec: {} },
): Record<string, unknown> {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one', ...metadata }, ...rest };
}

/** An APIResourceSchema of workspacetypes.tenancy.kcp.io with this schema of its v1alpha1. */
export function anApiResourceSchema(name: string, schema: unknown, spec: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    apiVersion: 'apis.kcp.io/v1alpha1',
    kind: 'APIResourceSchema',
    metadata: { name },
    spec: {
      group: 'tenancy.kcp.io',
      names: { kind: 'WorkspaceType', plural: 'workspacetypes' },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
      ...spec,
    },
  };
}

/** A ClusterCachedResource that declares `instances.machines.svm.io` under the identity. */
export function aClusterCachedResource(
  identity: string,
  { name = 'instances', kind = 'Instance', scope = 'Cluster', version = 'v1' } = {},
): Record<string, unknown> {
  return {
    apiVersion: 'cache.kcp.io/v1alpha1',
    kind: 'ClusterCachedResource',
    metadata: { name, annotations: { 'cache.kcp.io/resource-kind': kind, 'cache.kcp.io/resource-scope': scope } },
    spec: { group: 'machines.svm.io', resource: 'instances', version },
    status: { identityHash: identity },
  };
}
