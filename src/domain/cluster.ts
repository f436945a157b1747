/**
 * The name of a logical cluster, a stable id; and a canonical path, such as `root:org:team`, which
 * leads to a logical cluster. Another logical cluster may get the path later.
 *
 * A URL may have either in the same place. A text that contains ':' and does not begin with
 * `system:` is a path.
 */
import type { Resource } from './resource.js';

declare const clusterName: unique symbol;
declare const canonicalPath: unique symbol;
export type ClusterName = string & { readonly [clusterName]: true };
export type CanonicalPath = string & { readonly [canonicalPath]: true };

/** The logical cluster of kcp's own objects, such as its APIExports. */
export const rootCluster = 'root' as ClusterName;

/** The type of the object named `cluster` in which kcp describes a logical cluster. */
export const logicalClusterType: Resource = { group: 'core.kcp.io', resource: 'logicalclusters', identity: '' };

/** The canonical path of an object's logical cluster. */
export const pathAnnotation = 'kcp.io/path';

const segment = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const clusterPattern = new RegExp(`^${segment}$`);
const systemPattern = new RegExp(`^system:${segment}(?::${segment})*$`);
const pathPattern = new RegExp(`^${segment}(?::${segment})+$`);
const clusterCharactersMax = 253;

export function parseClusterName(text: string): ClusterName | undefined {
  if (text.length > clusterCharactersMax) return undefined;
  return clusterPattern.test(text) || systemPattern.test(text) ? (text as ClusterName) : undefined;
}

/** Accepts two segments or more; `parseAnyPath` also accepts one. */
export function parseCanonicalPath(text: string): CanonicalPath | undefined {
  if (text.length > clusterCharactersMax || text.startsWith('system:')) return undefined;
  return pathPattern.test(text) ? (text as CanonicalPath) : undefined;
}

/** A path of one segment or more, such as `root`, as in policies and objects. */
export function parseAnyPath(text: string): string | undefined {
  return text.startsWith('system:') ? undefined : (parseCanonicalPath(text) ?? parseClusterName(text));
}
