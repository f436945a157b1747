/**
 * Parses the path of a request: `[/services/cache]/shards/S/clusters/C/<rest>`, or a view's path
 * (view-path.ts). A missing part of the prefix is undefined; the parser still reads the rest, and
 * kube-face.ts refuses with `prefixMissing`.
 */
import { parseCanonicalPath, parseClusterName, type CanonicalPath, type ClusterName } from '../../domain/cluster.js';
import { badRequest, type Refusal } from '../../domain/errors.js';
import { parsed, refused, type Parsed } from '../../domain/parsed.js';
import { parseShardName, type ShardName } from '../../domain/shard.js';
import { parseViewPath, type ViewPath } from '../views/view-path.js';

/** One logical cluster by its name, all logical clusters, or the one with a canonical path. */
export type RequestedCluster = Readonly<{ kind: 'name'; name: ClusterName } | { kind: 'path'; path: CanonicalPath } | { kind: 'all' }>;

/** `view`: undefined unless the path leads to a view. */
export type KubePath = Readonly<{
  shard: ShardName | '*' | undefined;
  cluster: RequestedCluster | undefined;
  rest: readonly string[];
  view: ViewPath | undefined;
}>;

const prefix = ['services', 'cache'];

/** `segments`: of the decoded path (target.ts). */
export function parseKubePath(segments: readonly string[]): Parsed<KubePath> {
  const viewed = parseViewPath(segments);
  if (viewed?.kind === 'refused') return viewed;
  if (viewed !== undefined) return parseBehindShard('*', viewed.value.rest, viewed.value.view);
  const own = prefix.every((segment, i) => segments[i] === segment) ? segments.slice(prefix.length) : segments;

  const [first, shardText, ...behindShard] = own;
  if (first !== 'shards') return parseBehindShard(undefined, own);
  if (shardText === undefined || shardText === '') return refused(prefixMissing('shard'));
  const shard = shardText === '*' ? '*' : parseShardName(shardText);
  if (shard === undefined) return refused(badRequest(`invalid shard: ${JSON.stringify(shardText)} does not match the regex`));

  return parseBehindShard(shard, behindShard);
}

/** The refusal of a URL that lacks a part of its prefix. */
export function prefixMissing(what: 'shard' | 'cluster'): Refusal {
  return badRequest(
    `a ${what} name is required: a URL begins with /services/cache/shards/SHARD/clusters/CLUSTER, where * stands for all of them`,
  );
}

function parseBehindShard(shard: KubePath['shard'], behindShard: readonly string[], view?: ViewPath): Parsed<KubePath> {
  const [second, clusterText, ...behindCluster] = behindShard;
  if (second !== 'clusters') return parseRest({ shard, cluster: undefined, rest: behindShard, view });
  const cluster = parseRequestedCluster(clusterText ?? '');
  if (cluster === undefined) return refused(badRequest(`invalid cluster: ${JSON.stringify(clusterText ?? '')} does not match the regex`));
  return parseRest({ shard, cluster, rest: behindCluster, view });
}

function parseRest(path: KubePath): Parsed<KubePath> {
  return path.rest.includes('') ? refused(badRequest('invalid path: there is nothing between two slashes')) : parsed(path);
}

function parseRequestedCluster(text: string): RequestedCluster | undefined {
  if (text === '*') return { kind: 'all' };
  const name = parseClusterName(text);
  if (name !== undefined) return { kind: 'name', name };
  const path = parseCanonicalPath(text);
  return path && { kind: 'path', path };
}
