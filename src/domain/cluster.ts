/**
 * A logical cluster (a stable id) and a canonical path (`root:org:team`, an index to a logical cluster that may move).
 *
 * In a URL both stand in the same place. What contains ':' and does not begin with `system:` is a path.
 */
import type { Resource } from './resource.js';

declare const clusterName: unique symbol;
declare const canonicalPath: unique symbol;
export type ClusterName = string & { readonly [clusterName]: true };
export type CanonicalPath = string & { readonly [canonicalPath]: true };

/** Where kcp keeps what is there from the start, its own APIExports for example. */
export const rootCluster = 'root' as ClusterName;

/** Of the one object in which kcp says what a logical cluster is, by the name `cluster`. */
export const logicalClusterType: Resource = { group: 'core.kcp.io', resource: 'logicalclusters', identity: '' };

/** The annotation in which an object names the canonical path of its logical cluster. */
export const pathAnnotation = 'kcp.io/path';

const segment = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const clusterPattern = new RegExp(`^${segment}$`);
const systemPattern = new RegExp(`^system:${segment}(?::${segment})*$`);
const pathPattern = new RegExp(`^${segment}(?::${segment})+$`);
const clusterCharactersMax = 253;

/** A logical cluster name, or undefined when the text is not one. */
export function parseClusterName(text: string): ClusterName | undefined {
  if (text.length > clusterCharactersMax) return undefined;
  return clusterPattern.test(text) || systemPattern.test(text) ? (text as ClusterName) : undefined;
}

/** A canonical path of at least two segments, or undefined when the text is not one. */
export function parseCanonicalPath(text: string): CanonicalPath | undefined {
  if (text.length > clusterCharactersMax || text.startsWith('system:')) return undefined;
  return pathPattern.test(text) ? (text as CanonicalPath) : undefined;
}

/** A path of one segment or more, as policies and objects name them: `root` is one. Undefined when the text is not one. */
export function parseAnyPath(text: string): string | undefined {
  return text.startsWith('system:') ? undefined : (parseCanonicalPath(text) ?? parseClusterName(text));
}
