/**
 * Decides which server gets a request, or what the proxy answers instead: by the path, and by the
 * logical cluster that a service account's token names. As in kcp's proxy, the decision precedes
 * authentication.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isObject, membersOf } from '../domain/base/members.js';
import { parseClusterName, type ClusterName } from '../domain/cluster.js';
import type { Paths } from '../domain/ports.js';
import type { PathResolution } from '../domain/path-resolution.js';
import type { ShardName } from '../domain/shard.js';
import { accessNotPermitted, malformed, notAvailable, pageNotFound, redirect, notSent, type OwnAnswer } from './answers.js';
import { clustersPath, mostSpecificFirst, backendUrlOf, type Mapping, type BackendUrl } from './mapping.js';
import { routeOf, type Route } from './route.js';
import { ShardUrls, type ShardUrlsParts } from './shard-urls.js';

/** `target`: path and query. `shard`: the shard of the logical cluster, if the path names one. */
export type Destination =
  | Readonly<{ kind: 'backend'; mapping: Mapping; origin: string; target: string; shard: ShardName | undefined }>
  | Readonly<{ kind: 'local'; path: string }>
  | Readonly<{ kind: 'answer'; answer: OwnAnswer }>;

type Asked = Readonly<{ method: string; url: string; headers: Readonly<IncomingHttpHeaders> }>;

/** Below these prefixes the logical cluster of a token is not added to the path. */
const prefixesWithoutTokenCluster: readonly string[] = [`${clustersPath}/`, '/services/'];
const hostPattern = /^[\w.~:[\]%-]*$/;
/** A header of requests from one shard to another. */
const shardedHeader = 'x-kubernetes-sharded-request';

export type DestinationsParts = Readonly<{ paths: Pick<Paths, 'resolve'> }> & ShardUrlsParts;

export class Destinations {
  readonly #parts: DestinationsParts;
  readonly #mappings: readonly Mapping[];
  readonly #urls: ShardUrls;

  /** `mappings`: in any order. */
  constructor(parts: DestinationsParts, mappings: readonly Mapping[]) {
    this.#parts = parts;
    this.#urls = new ShardUrls(parts);
    this.#mappings = mappings.toSorted(mostSpecificFirst);
  }

  async of(asked: Asked): Promise<Destination> {
    const route = this.#route(asked);
    switch (route.kind) {
      case 'local':
        return route;
      case 'redirect':
        // Writes are not redirected: the client would repeat them, and the clean form of a mistyped
        // path may name a whole collection.
        return instead(asked.method === 'GET' || asked.method === 'HEAD' ? redirect(route.location) : malformed);
      case 'malformed':
        return instead(malformed);
      case 'unmapped':
        return instead(pageNotFound);
      case 'mapped': {
        const { mapping, path, target } = route;
        const resolution = path === undefined ? undefined : await this.#parts.paths.resolve(path);
        const missing = resolution && answerIfUnreachable(resolution, asked);
        if (missing !== undefined) return instead(missing);
        const { origin, path: base } = mapping.backend;
        return { kind: 'backend', mapping, origin, target: `${base}${target}`, shard: shardOf(resolution) };
      }
      case 'cluster': {
        const { mapping, path, rest } = route;
        const resolution = await this.#parts.paths.resolve(path);
        const missing = answerIfUnreachable(resolution, asked);
        if (missing !== undefined) return instead(missing);
        const to = await this.#place(resolution);
        if (to === undefined) return instead(notSent('the shard of the workspace is not known yet'));
        const target = `${to.path}${rest}`;
        const below = target.startsWith('/') ? target : `/${target}`;
        return { kind: 'backend', mapping, origin: to.origin, target: below, shard: shardOf(resolution) };
      }
    }
  }

  /**
   * A token of a service account names a logical cluster. If the path names none, the request is
   * for the logical cluster of the token.
   */
  #route({ url, headers }: Asked): Route {
    const host = headers[':authority'] ?? headers.host ?? '';
    if (typeof host !== 'string' || !hostPattern.test(host)) return { kind: 'malformed' };
    const route = routeOf(url, this.#mappings);
    const isPlaced =
      route.kind === 'local' ||
      prefixesWithoutTokenCluster.some((prefix) => url.startsWith(prefix)) ||
      headers[shardedHeader] !== undefined;
    const cluster = isPlaced ? undefined : clusterOfToken(headers.authorization);
    return cluster === undefined ? route : routeOf(`${clustersPath}/${cluster}${url}`, this.#mappings);
  }

  /** Undefined while no Shard object says where the shard is. */
  async #place(resolution: PathResolution): Promise<BackendUrl | undefined> {
    if (resolution.kind === 'mount') return backendUrlOf(new URL(resolution.url));
    if (resolution.kind !== 'cluster') return undefined;
    const place = await this.#urls.of(resolution.shard);
    return place === undefined ? undefined : { origin: place.origin, path: `${place.path}/clusters/${resolution.cluster}` };
  }
}

/** Undefined for a mounted Workspace, which is on no shard. */
function shardOf(resolution: PathResolution | undefined): ShardName | undefined {
  return resolution?.kind === 'cluster' ? resolution.shard : undefined;
}

/** Undefined if the path resolves, and its Workspaces are available. */
function answerIfUnreachable(resolution: PathResolution, { method, url }: Asked): OwnAnswer | undefined {
  switch (resolution.kind) {
    case 'cluster':
    case 'mount':
      return resolution.unavailable ? notAvailable : undefined;
    case 'uncertain':
      return notSent('the workspace is not known here, and not every shard has sent what it has');
    case 'disputed':
      return notSent('it is not certain which shard has the workspace');
    default:
      return accessNotPermitted(method, pathOf(url));
  }
}

function instead(answer: OwnAnswer): Destination {
  return { kind: 'answer', answer };
}

function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

const scheme = 'Bearer ';
const payloadCharactersMax = 16 * 1024;

/**
 * The logical cluster to which the token of a service account belongs. Pure. In-cluster clients
 * cannot put the logical cluster into their paths, so kcp's proxy and this one add it. Only the
 * shard verifies the token.
 *
 * `authorization`: the Authorization header. Undefined for any other token.
 */
function clusterOfToken(authorization: string | undefined): ClusterName | undefined {
  if (authorization?.startsWith(scheme) !== true) return undefined;
  const [, payload = '', signature, ...more] = authorization.slice(scheme.length).split('.');
  if (signature === undefined || more.length > 0 || payload.length > payloadCharactersMax) return undefined;
  const claims = claimsIn(payload);
  const bound = membersOf(claims['kubernetes.io'])['clusterName'];
  const name = typeof bound === 'string' ? bound : claims['kubernetes.io/serviceaccount/clusterName'];
  return typeof name === 'string' ? parseClusterName(name) : undefined;
}

function claimsIn(payload: string): Readonly<Record<string, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return isObject(claims) ? claims : {};
  } catch {
    return {};
  }
}
