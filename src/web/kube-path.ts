/**
 * The path of a request: `[/services/cache]/shards/S/clusters/C/<rest>`, or that of a view (view-path.ts). It is split before it is decoded, so that an
 * encoded '/' stays inside its segment, and `%2A` is `*`. Where a part of the prefix is missing, what follows it is read all the same: the caller
 * learns what is missing from the answer to what it asks for.
 */
import { parseCanonicalPath, parseClusterName, type CanonicalPath, type ClusterName } from '../domain/cluster.js';
import { badRequest, type Refusal } from '../domain/errors.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';
import { parseShardName, type ShardName } from '../domain/shard.js';
import { parseViewPath, type ViewPath } from './view-path.js';

/** Where a request points: one logical cluster, all of them, or the one that a canonical path leads to. */
export type ClusterPlace = Readonly<{ kind: 'name'; name: ClusterName } | { kind: 'path'; path: CanonicalPath } | { kind: 'all' }>;

/** `view`: undefined where the path names places of the cache. */
export type KubePath = Readonly<{
  shard: ShardName | '*' | undefined;
  cluster: ClusterPlace | undefined;
  rest: readonly string[];
  view: ViewPath | undefined;
}>;

const prefix = ['services', 'cache'];

/** The target of a request as a URL: one that begins with '//' is a path all the same, and no host. */
export function parseTarget(target: string): Parsed<URL> {
  const text = `https://cache${target}`;
  return target.startsWith('/') && URL.canParse(text)
    ? parsed(new URL(text))
    : refused(badRequest(`invalid path: ${JSON.stringify(target)}`));
}

export function parseKubePath(path: string): Parsed<KubePath> {
  const segments = decode(path);
  if (segments === undefined) return refused(badRequest(`invalid path: ${JSON.stringify(path)}`));
  const viewed = parseViewPath(segments);
  if (viewed?.kind === 'refused') return viewed;
  if (viewed !== undefined) return parseBehindShard('*', viewed.value.rest, viewed.value.view);
  const own = prefix.every((segment, i) => segments[i] === segment) ? segments.slice(prefix.length) : segments;

  const [first, shardText, ...behindShard] = own;
  if (first !== 'shards') return parseBehindShard(undefined, own);
  if (shardText === undefined || shardText === '') return refused(placeMissing('shard'));
  const shard = shardText === '*' ? '*' : parseShardName(shardText);
  if (shard === undefined) return refused(badRequest(`invalid shard: ${JSON.stringify(shardText)} does not match the regex`));

  return parseBehindShard(shard, behindShard);
}

/** The refusal of a URL that lacks a part of its prefix. */
export function placeMissing(what: 'shard' | 'cluster'): Refusal {
  return badRequest(
    `a ${what} name is required: a URL begins with /services/cache/shards/SHARD/clusters/CLUSTER, where * stands for all of them`,
  );
}

function parseBehindShard(shard: KubePath['shard'], behindShard: readonly string[], view?: ViewPath): Parsed<KubePath> {
  const [second, clusterText, ...behindCluster] = behindShard;
  if (second !== 'clusters') return parsed({ shard, cluster: undefined, rest: behindShard, view });
  const cluster = parseClusterPlace(clusterText ?? '');
  if (cluster === undefined) return refused(badRequest(`invalid cluster: ${JSON.stringify(clusterText ?? '')} does not match the regex`));
  return parsed({ shard, cluster, rest: behindCluster, view });
}

function parseClusterPlace(text: string): ClusterPlace | undefined {
  if (text === '*') return { kind: 'all' };
  const name = parseClusterName(text);
  if (name !== undefined) return { kind: 'name', name };
  const path = parseCanonicalPath(text);
  return path && { kind: 'path', path };
}

/** The segments between slashes, decoded; a trailing slash adds none. Undefined when an escape is broken. */
function decode(path: string): readonly string[] | undefined {
  const raw = path.replace(/^\//, '').replace(/\/$/, '');
  if (raw === '') return [];
  try {
    return raw.includes('%') ? raw.split('/').map(decodeURIComponent) : raw.split('/');
  } catch {
    return undefined;
  }
}
