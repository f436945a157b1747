/**
 * What a ClusterCachedResource declares: a type that is served while the object exists.
 *
 * Bound: one of more than `declarationBytesMax` bytes is not read. It is parsed in the tick that publishes it, and whoever may
 * write one may write many.
 */
import type { Resource } from './resource.js';
import { textAt } from './text-at.js';
import { compareTexts } from './version-order.js';

/** Where a ClusterCachedResource lives. */
export type Place = Readonly<{ shard: string; cluster: string; name: string }>;

/** A type that a ClusterCachedResource declares; the identity is never ''. */
export type Declared = Resource;

/** What one usable ClusterCachedResource declares. */
export type Declaration = Declared & Readonly<{ place: Place; version: string; kind: string; namespaced: boolean }>;

/** The type of the objects that declare types. */
export const declaring: Resource = { group: 'cache.kcp.io', resource: 'clustercachedresources', identity: '' };

export function isDeclaring({ group, resource }: Pick<Resource, 'group' | 'resource'>): boolean {
  return resource === declaring.resource && group === declaring.group;
}

/** How kcp spells the core group in cache URLs: a key has the group that its objects are found under. */
export const coreAlias = 'core';
/** The resource, version or identity of a type that is declared. */
export const declaredName = /^[A-Za-z0-9][A-Za-z0-9-]*$/;
const kindAnnotation = 'cache.kcp.io/resource-kind';
const scopeAnnotation = 'cache.kcp.io/resource-scope';
/** kcp's have 2 kB. */
const declarationBytesMax = 64 * 1024;
/** Of each name; Kubernetes allows no longer one for any of them. */
const nameLengthMax = 253;

/**
 * Reads a ClusterCachedResource; undefined when it does not, or not yet, declare a type. The names end up in URLs and
 * keys, so a text that is no valid name there declares nothing. An identity of '*' would open every other one.
 */
export function parseDeclaration(place: Place, body: Uint8Array): Declaration | undefined {
  if (body.length > declarationBytesMax) return undefined;
  const object: unknown = JSON.parse(new TextDecoder().decode(body));
  const group = textAt(object, 'spec', 'group') ?? '';
  const resource = textAt(object, 'spec', 'resource') ?? '';
  const version = textAt(object, 'spec', 'version') ?? '';
  const identity = textAt(object, 'status', 'identityHash') ?? '';
  const kind = textAt(object, 'metadata', 'annotations', kindAnnotation) ?? '';
  const scope = textAt(object, 'metadata', 'annotations', scopeAnnotation);
  if ([group, resource, version, identity, kind].some(({ length }) => length > nameLengthMax)) return undefined;
  if (scope !== 'Namespaced' && scope !== 'Cluster') return undefined;
  if (!/^(?:[a-z0-9][a-z0-9.-]*)?$/.test(group) || !/^[A-Za-z][A-Za-z0-9-]*$/.test(kind)) return undefined;
  if (![resource, version, identity].every((name) => declaredName.test(name))) return undefined;
  return { place, group: group === coreAlias ? '' : group, resource, version, identity, kind, namespaced: scope === 'Namespaced' };
}

/** The order that decides where ClusterCachedResources disagree (`catalogue.ts` C3). */
export function comparePlaces({ place: left }: Declaration, { place: right }: Declaration): number {
  return compareTexts(left.name, right.name) || compareTexts(left.cluster, right.cluster) || compareTexts(left.shard, right.shard);
}

/** The key of a map. */
export function formatPlace({ shard, cluster, name }: Place): string {
  return JSON.stringify([shard, cluster, name]);
}
