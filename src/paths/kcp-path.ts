/**
 * Paths as kcp's own proxy parses them: which texts are paths, and which logical cluster is a
 * user's home. Pure.
 */
import { createHash } from 'node:crypto';
import { parseClusterName, type ClusterName } from '../domain/cluster.js';

const segmentPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const charactersMax = 2_048;
/** Nobody nests Workspaces so deep. kcp itself has no bound, and looks up every segment. */
const segmentsMax = 64;
const hashBytes = 8;

export type PathSegments = readonly [string, ...string[]];

/**
 * The segments of a path, or of a logical cluster's name; undefined if the text is neither.
 * `user:NAME` becomes the name of that user's home.
 */
export function parsePathSegments(text: string): PathSegments | undefined {
  if (text.length > charactersMax) return undefined;
  const segments = text.split(':', segmentsMax + 1);
  if (segments.length > segmentsMax || !segments.every((segment) => segmentPattern.test(segment))) return undefined;
  const [first = '', second, ...others] = segments;
  return first === 'user' && second !== undefined ? [homeOf(second), ...others] : [first, ...segments.slice(1)];
}

/**
 * The logical cluster that kcp creates for a user. Its name is the first bytes of a SHA-224 in base
 * 36, with a zero for each leading zero byte.
 */
export function homeOf(user: string): ClusterName {
  const bytes = createHash('sha224').update(user).digest().subarray(0, hashBytes);
  const zeros = bytes.findIndex((byte) => byte !== 0);
  const leading = zeros === -1 ? hashBytes : zeros;
  const digits = leading === hashBytes ? '' : bytes.readBigUInt64BE().toString(36);
  const cluster = parseClusterName(`${'0'.repeat(leading)}${digits}`);
  if (cluster === undefined) throw new Error('a hash in base 36 is no name of a logical cluster');
  return cluster;
}
