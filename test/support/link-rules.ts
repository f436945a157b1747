/** Link policies as an operator writes them, and objects for them to match. */
import { parseLinkPolicy, type LinkPolicy } from '../../src/domain/link-policy.js';
import { compose } from '../../src/json/compose.js';
import { scanObject } from '../../src/json/object-text.js';
import type { StoredObject } from '../../src/domain/object.js';
import type { Slice } from '../../src/domain/slice.js';
import { aKey, type Place } from './objects.js';

export type WrittenRule = Readonly<{
  types?: readonly string[];
  shards?: readonly string[];
  clusters?: readonly string[];
  pathPrefix?: string;
  labels?: string | Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
}>;

export function aPolicy(...rules: readonly WrittenRule[]): LinkPolicy {
  const policy = parseLinkPolicy(rules);
  if (policy.kind === 'wrong') throw new Error(policy.problems.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'));
  return policy.policy;
}

export type Content = Readonly<{
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  rest?: Readonly<Record<string, unknown>>;
}>;

export function anObject(place: Place = {}, { labels, annotations = {}, rest = {} }: Content = {}): StoredObject {
  const key = aKey(place);
  const text = {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name: key.name, annotations: { 'kcp.io/cluster': key.cluster, 'kcp.io/shard': key.shard, ...annotations }, labels },
    ...rest,
  };
  const scanned = scanObject(new TextEncoder().encode(JSON.stringify(text)), 100);
  const body = compose(scanned, { place: key, apiVersion: text.apiVersion, version: 'v1', metadata: {} });
  return { key, revision: 1, resourceVersion: '1', body };
}

/** A ClusterCachedResource that declares `RESOURCE.machines.svm.io` under the identity. */
export function aDeclaration(identity: string, place: Place = {}, resource = 'instances'): StoredObject {
  return anObject(
    { name: 'declared', ...place, group: 'cache.kcp.io', resource: 'clustercachedresources' },
    {
      annotations: { 'cache.kcp.io/resource-kind': 'Instance', 'cache.kcp.io/resource-scope': 'Cluster' },
      rest: { spec: { group: 'machines.svm.io', resource, version: 'v1' }, status: { identityHash: identity } },
    },
  );
}

export function sliceOf({ key: { shard, resource } }: StoredObject): Slice {
  return { shard, resource };
}
