/** The verb and the resource of a request, from its method and the path after the cluster. */
import { badRequest, type Refusal } from '../../domain/errors.js';
import { formatGroupResource } from '../../domain/resource.js';
import { isResourceVersion } from '../../domain/revision.js';
import type { Revisions } from '../../domain/store-port.js';

/** Discovery lists the verbs in this order. */
export const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;
export type Verb = (typeof verbs)[number];

export type ResourcePath = Readonly<{
  group: string;
  version: string;
  resource: string;
  /** Undefined if the URL has none; '' if nothing follows the ':'. */
  identity: string | undefined;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
  /** The old `/watch/` prefix: every read below it is a watch, and nothing else is allowed. */
  forcedWatch: boolean;
}>;

/** Subresources of a namespace, in any API group; they are no resources in the namespace. */
const namespaceSubresources: readonly string[] = ['status', 'finalize'];

/** The resource of `api/V/…` or `apis/G/V/…`; undefined if the path names none. */
export function parseResourcePath(rest: readonly string[]): ResourcePath | undefined {
  const [root, ...behindRoot] = rest;
  const [group, version, ...tail] = root === 'api' ? ['', ...behindRoot] : root === 'apis' ? behindRoot : [];
  if (group === undefined || version === undefined || tail.length === 0) return undefined;
  const forcedWatch = tail[0] === 'watch' && tail.length > 1;
  const own = forcedWatch ? tail.slice(1) : tail;
  const namespaced = own[0] === 'namespaces' && own.length > 2 && !namespaceSubresources.includes(own[2] ?? '');
  const [resourceText, name, subresource, ...more] = namespaced ? own.slice(2) : own;
  if (resourceText === undefined || more.length > 0) return undefined;
  const colon = resourceText.indexOf(':');
  return {
    group: group === 'core' ? '' : group,
    version,
    resource: colon < 0 ? resourceText : resourceText.slice(0, colon),
    identity: colon < 0 ? undefined : resourceText.slice(colon + 1),
    namespace: namespaced ? own[1] : undefined,
    name,
    subresource,
    forcedWatch,
  };
}

/** Undefined (405) if the method is not defined for the collection or the object. */
export function verbOf(method: string, { name, forcedWatch }: ResourcePath, query: URLSearchParams): Verb | undefined {
  if (forcedWatch) return method === 'GET' || method === 'HEAD' ? 'watch' : undefined;
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name !== undefined) return 'get';
      return isTrue(query.get('watch')) ? 'watch' : 'list';
    case 'POST':
      return name === undefined ? 'create' : undefined;
    case 'PUT':
      return name === undefined ? undefined : 'update';
    case 'PATCH':
      return name === undefined ? undefined : 'patch';
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

const methods: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

/** The inverse of `verbOf`. */
export function methodOf(verb: Verb): string {
  return methods[verb];
}

export function isRead(verb: Verb): boolean {
  return methods[verb] === 'GET';
}

/** As Kubernetes reads a boolean: true if present and neither "0" nor "false", even if empty. */
export function isTrue(text: string | null): boolean {
  return text !== null && text !== '0' && text.toLowerCase() !== 'false';
}

export function methodNotAllowed(method: string, { group, resource }: ResourcePath): Refusal {
  return {
    reason: 'MethodNotAllowed',
    message: `${method} is not supported on resources of kind ${JSON.stringify(formatGroupResource({ group, resource }))}`,
    details: { group, kind: resource },
  };
}

export function resourceNotFound({ group, resource, version }: ResourcePath): Refusal {
  return {
    reason: 'NotFound',
    message: `the server could not find the requested resource (${formatGroupResource({ group, resource })}, version ${version})`,
    details: { group, kind: resource },
  };
}

export function objectNotFound({ group, resource }: Pick<ResourcePath, 'group' | 'resource'>, name: string): Refusal {
  return {
    reason: 'NotFound',
    message: `${formatGroupResource({ group, resource })} ${JSON.stringify(name)} not found`,
    details: { name, group, kind: resource },
  };
}

export function wildcardWrite(what: 'shard' | 'cluster'): Refusal {
  return badRequest(`a write needs one ${what}, not all of them`);
}

/**
 * Which requests must wait until this server has published every earlier acknowledged write,
 * whichever server of the store acknowledged it. If the store has one server, no request waits.
 *
 *   resourceVersion        get, list, watch
 *   unset, or a continue   waits: a consistent read
 *   "0"                    does not wait: any state will do
 *   not published here     waits: another server may have shown it
 *
 * Updates, patches and deletes wait, because the published state decides whether they are refused
 * or change nothing. Creates wait only for a dry run: otherwise the store itself waits before it
 * refuses one.
 *
 * `query` need not be valid.
 */
export function needsNewest(verb: Verb, query: URLSearchParams, revisions: Pick<Revisions, 'locate'>): boolean {
  if (verb === 'create') return query.has('dryRun');
  if (!isRead(verb)) return true;
  const resourceVersion = query.get('resourceVersion') ?? '';
  if (query.get('continue') || resourceVersion === '') return true;
  return isResourceVersion(resourceVersion) && revisions.locate(resourceVersion).kind === 'above';
}
