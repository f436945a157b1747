/**
 * The declaration of a ClusterCachedResource: a type that is served while the object exists.
 *
 * Bound: an object of more than `declarationBytesMax` bytes is ignored, because the tick that
 * publishes an object also parses it.
 */
import type { Resource } from '../resource.js';
import { textAt } from '../base/members.js';
import { compareTexts } from '../syntax/version-order.js';

export type DeclarationKey = Readonly<{ shard: string; cluster: string; name: string }>;

/** A type that a ClusterCachedResource declares; its identity is never ''. */
export type Declared = Resource;

export type Declaration = Declared & Readonly<{ place: DeclarationKey; version: string; kind: string; namespaced: boolean }>;

/** The type of the objects that declare types. */
export const declaring: Resource = { group: 'cache.kcp.io', resource: 'clustercachedresources', identity: '' };

export function isDeclaring({ group, resource }: Pick<Resource, 'group' | 'resource'>): boolean {
  return resource === declaring.resource && group === declaring.group;
}

/** kcp's spelling of the core group in cache URLs. Keys have the empty group instead. */
export const coreAlias = 'core';
/** A valid resource, version or identity of a declared type. */
export const declaredName = /^[A-Za-z0-9][A-Za-z0-9-]*$/;
const kindAnnotation = 'cache.kcp.io/resource-kind';
const scopeAnnotation = 'cache.kcp.io/resource-scope';
/** kcp's declarations are about 2 kB. */
const declarationBytesMax = 64 * 1024;
/** Kubernetes' maximum. */
const nameLengthMax = 253;

/**
 * Reads a ClusterCachedResource. Returns undefined if it does not declare a type, or not yet. The
 * names become parts of URLs and keys, so an object with an invalid name declares nothing. Nor does
 * one with the identity '*', which would match every identity.
 */
export function parseDeclaration(place: DeclarationKey, body: Uint8Array): Declaration | undefined {
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
export function compareDeclarations({ place: left }: Declaration, { place: right }: Declaration): number {
  return compareTexts(left.name, right.name) || compareTexts(left.cluster, right.cluster) || compareTexts(left.shard, right.shard);
}

export function formatDeclarationKey({ shard, cluster, name }: DeclarationKey): string {
  return JSON.stringify([shard, cluster, name]);
}
