/**
 * Finds the path, the type, the scope and the verb of a request, authorizes its caller, then calls
 * the verb. Throws Refused.
 */
import type { IncomingMessage } from 'node:http';
import type { Caller } from '../../domain/caller.js';
import { serves, type Catalogue, type ServedType } from '../../domain/catalogue/catalogue.js';
import { badRequest, Refused, unreachable } from '../../domain/errors.js';
import { attempt, mustParse } from '../../domain/parsed.js';
import type { Exchange } from '../../http/exchange.js';
import { acceptsPartial } from '../formats/accept.js';
import { authorize } from '../authorize.js';
import { clusterOf, writtenCluster, type Answer, type Call, type KubePorts, type ClusterOnShard } from './call.js';
import { create, patch, remove, update } from './write-verbs.js';
import { removeCollection } from './delete-collection.js';
import { discover, type DiscoveryAnswer } from '../discovery/discovery-face.js';
import { get } from './get.js';
import { checkOptions } from './known-options.js';
import { parseKubePath, prefixMissing, type KubePath } from './kube-path.js';
import {
  isRead,
  methodNotAllowed,
  needsNewest,
  objectNotFound,
  parseResourcePath,
  resourceNotFound,
  verbOf,
  type ResourcePath,
  type Verb,
} from './kube-request.js';
import { list } from './list.js';
import type { Documented, SchemaTexts } from '../discovery/openapi-schema.js';
import { review } from '../reviews/reviews.js';
import { findReviewType, reviewTypes, type ReviewType } from '../reviews/review-types.js';
import { parseTarget, withoutQuery } from '../target.js';
import { openView, type View } from '../views/view.js';
import { watch } from './watch.js';
import { parseWriteOptions } from './write-options.js';

/** Memory to reserve before a discovery document is made. */
const discoveryBytesMax = 1024 * 1024;

/**
 * Paths that are answered without a shard. If discovery failed, kubectl would show no Status, only
 * "unknown reason". So the server answers discovery and refuses the next request.
 */
const placeless: readonly string[] = ['version', 'api', 'apis', 'openapi'];

/**
 * `target`: path and query as they were sent. `caller`: of the connection, or of a session on the
 * connection. `answerWith`: called instead of the verb, if given.
 */
export type FaceRequest = Readonly<{
  target: string;
  exchange: Exchange;
  caller: Caller;
  answerWith?: (call: Call, ports: KubePorts) => Promise<Answer>;
}>;

export type FaceAnswer =
  | Answer
  | Readonly<{ kind: 'tagged'; answer: DiscoveryAnswer }>
  | Readonly<{ kind: 'text'; code: number; text: string }>;

/**
 * Calls `noteVerb` as soon as the verb is known, so that metrics name it even if the request fails.
 */
export async function answer(asked: FaceRequest, ports: KubePorts, version: string, noteVerb: (verb: Verb) => void): Promise<FaceAnswer> {
  const { target, exchange, caller, answerWith = run } = asked;
  const { request } = exchange;
  const method = request.method ?? 'GET';
  const understood = attempt(() => understand(target, method));
  const { path: asks, resource, verb } = understood.kind === 'parsed' ? understood.value : notUnderstood;
  if (verb !== undefined) noteVerb(verb);
  // Checked before parse errors, so that a forbidden caller does not learn whether the request is
  // valid.
  const forbidden = authorize(caller, { path: withoutQuery(target), method, shard: asks?.shard, resource, verb, view: asks?.view });
  const admitted = forbidden && asks?.view && (await ports.viewCallers?.admitted(caller, asks.view, verb ?? 'get'));
  if (forbidden !== undefined && (admitted === undefined || !isWithin(admitted, asks?.cluster))) throw new Refused(forbidden);
  const { path, query } = mustParse(understood);
  if (verb !== undefined) checkOptions(verb, query);
  if (path.shard === undefined && !placeless.includes(path.rest[0] ?? '')) throw new Refused(prefixMissing('shard'));

  if (resource === undefined && !(await exchange.memory.reserve(discoveryBytesMax))) return { kind: 'streamed' };
  // Wait first, because the view and the canonical path must be as new as the objects.
  if (verb !== undefined && needsNewest(verb, query, ports.revisions)) await ports.revisions.reachNewest();
  const at = ports.revisions.published;
  const view = path.view && (await openView(path.view, ports));
  const schemas = path.rest[0] === 'openapi' ? await ports.schemas.texts() : noSchemas;
  const types = (): readonly Documented[] => typesShown(path, view, ports.catalogue);
  const other = answerOther(path, request, { version, types, schemas });
  if (other !== undefined) return other;
  if (path.shard === undefined) throw new Refused(prefixMissing('shard'));
  if (path.cluster === undefined) throw new Refused(prefixMissing('cluster'));
  if (resource === undefined)
    throw new Refused({ reason: 'NotFound', message: 'the server could not find the requested resource', details: {} });

  if (view !== undefined && (verb === undefined || !isRead(verb))) throw new Refused(methodNotAllowed(method, resource));
  const reviewType = view === undefined ? findReviewType(resource) : undefined;
  if (reviewType !== undefined) {
    assertReview(method, resource, reviewType);
    parseWriteOptions(query, 'CreateOptions');
    return review(reviewType, { shard: path.shard, cluster: path.cluster }, { exchange, heavy: ports.heavy.of(caller.user) });
  }
  const isReading = verb !== undefined && isRead(verb);
  const cluster = admitted?.cluster ?? (isReading ? await clusterOf(path.cluster, ports.paths) : writtenCluster(path.cluster));
  const resolution = (view ?? ports.catalogue).resolve({
    group: resource.group,
    version: resource.version,
    resource: resource.resource,
    identity: resource.identity,
    cluster,
    partial: acceptsPartial(request.headers.accept, verb === 'list' || verb === 'watch' ? verb : 'one'),
  });
  if (resolution.kind === 'unknown' || resource.identity === '') throw new Refused(resourceNotFound(resource));
  if (verb === undefined) throw new Refused(methodNotAllowed(method, resource));
  if (resource.subresource !== undefined) throw new Refused(objectNotFound(resource, resource.name ?? ''));

  const { type, identity } = resolution;
  const bound = {
    at,
    path: path.cluster.kind === 'path' ? path.cluster.path : undefined,
    shownBy: view?.shownBy,
    declaredBy: leavesIdentityOpen(resource, type) && view?.shownBy === undefined && cluster !== '*' ? cluster : undefined,
  };
  const heavy = ports.heavy.of(caller.user);
  const where = { shard: admitted?.shard ?? path.shard, cluster, bound, labels: view?.labels ?? [] };
  return answerWith({ verb, path: resource, type, identity, ...where, query, request, exchange, heavy }, ports);
}

function leavesIdentityOpen(asked: ResourcePath, type: Pick<ServedType, 'identity'>): boolean {
  return asked.identity === undefined && type.identity !== '';
}

/** Whether the URL names no cluster but the admitted one. For '*' only that cluster is read. */
function isWithin(admitted: ClusterOnShard, cluster: KubePath['cluster']): boolean {
  return cluster === undefined || cluster.kind === 'all' || (cluster.kind === 'name' && cluster.name === admitted.cluster);
}

const noSchemas: SchemaTexts = new Map();
const notUnderstood = { path: undefined, resource: undefined, verb: undefined };

function understand(
  target: string,
  method: string,
): Readonly<{ path: KubePath; query: URLSearchParams; resource: ResourcePath | undefined; verb: Verb | undefined }> {
  const { path: text, segments, query } = mustParse(parseTarget(target));
  // A DELETE without a name deletes the collection. A slash at the end suggests that a script left
  // out the name by mistake.
  if (method === 'DELETE' && text.endsWith('/')) throw new Refused(badRequest('Name parameter required.'));
  const path = mustParse(parseKubePath(segments));
  const resource = parseResourcePath(path.rest);
  return { path, query, resource, verb: resource && verbOf(method, resource, query) };
}

function run(call: Call, ports: KubePorts): Promise<Answer> {
  switch (call.verb) {
    case 'get':
      return get(call, ports);
    case 'list':
      return list(call, ports);
    case 'watch':
      return watch(call, ports);
    case 'create':
      return create(call, ports);
    case 'update':
      return update(call, ports);
    case 'patch':
      return patch(call, ports);
    case 'delete':
      return remove(call, ports);
    case 'deletecollection':
      return removeCollection(call, ports);
    default:
      return unreachable(call.verb);
  }
}

/** Throws Refused for anything but a create. */
function assertReview(method: string, path: ResourcePath, type: ReviewType): void {
  if (!serves(type, path.version) || path.identity !== undefined || path.namespace !== undefined || path.forcedWatch)
    throw new Refused(resourceNotFound(path));
  if (method !== 'POST' || path.name !== undefined) throw new Refused(methodNotAllowed(method, path));
}

function typesShown({ cluster }: KubePath, view: View | undefined, catalogue: Catalogue): readonly Documented[] {
  const name = cluster?.kind === 'name' ? cluster.name : '*';
  return view === undefined ? [...catalogue.forCluster(name), ...reviewTypes] : view.types(name);
}

/**
 * Answers discovery, and the other paths without a resource that kcp's cache server answers below a
 * shard.
 */
function answerOther(
  { rest }: KubePath,
  request: IncomingMessage,
  described: Readonly<{ version: string; types: () => readonly Documented[]; schemas: SchemaTexts }>,
): FaceAnswer | undefined {
  const [first, ...more] = rest;
  if (first === 'healthz' && more.length === 0) return { kind: 'text', code: 200, text: 'ok' };
  if (first === 'metrics' && more.length === 0)
    return { kind: 'text', code: 501, text: 'metrics are served at /metrics, not below a shard\n' };
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
  const found = discover(rest, { accept: request.headers.accept, ...described });
  if (found?.kind === 'refused') throw new Refused(found.refusal);
  return found && { kind: 'tagged', answer: found.answer };
}
