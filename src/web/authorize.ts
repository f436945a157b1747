/**
 * Who may do what. Members of system:masters may do everything. A certificate of a shard, a cache
 * or a reader may read everything except views; a shard's may also write its own shard. A syncer's
 * may read the syncer's view. Callers who may read may also review their own rights. Everyone else
 * may only read health, and the views that RBAC allows (view-callers.ts).
 */
import { isMaster, mayRead, mayReadFor, mayWriteFor, type Caller } from '../domain/caller.js';
import type { Refusal } from '../domain/errors.js';
import type { ShardName } from '../domain/shard.js';
import type { ResourcePath, Verb } from './kube/kube-request.js';
import { findReviewType } from './reviews/review-types.js';
import type { ViewPath } from './views/view-path.js';

export type RequestAttributes = Readonly<{
  path: string;
  method: string;
  shard: ShardName | '*' | undefined;
  resource: ResourcePath | undefined;
  verb: Verb | undefined;
  view?: ViewPath | undefined;
}>;

/** Returns the refusal in Kubernetes' words; undefined if the caller is allowed. */
export function authorize(caller: Caller, asked: RequestAttributes): Refusal | undefined {
  return mayAsk(caller, asked) ? undefined : forbidden(caller, asked);
}

/**
 * Every GET is a read. A write is one of kube's verbs on a resource of one shard. Only masters may
 * do anything else, such as removing shards.
 */
function mayAsk(caller: Caller, { method, shard, resource, verb, view }: RequestAttributes): boolean {
  if (isMaster(caller)) return true;
  if (view !== undefined) return view.kind === 'syncer' && mayReadFor(caller, view.id);
  if (verb === 'create' && resource !== undefined && findReviewType(resource) !== undefined) return mayRead(caller);
  if (method === 'GET' || method === 'HEAD') return mayRead(caller);
  return verb !== undefined && shard !== undefined && shard !== '*' && mayWriteFor(caller, shard);
}

function forbidden(caller: Caller, asked: RequestAttributes): Refusal {
  const user = JSON.stringify(caller.user);
  const { resource, verb } = asked;
  if (resource === undefined || verb === undefined) {
    return {
      reason: 'Forbidden',
      message: `forbidden: User ${user} cannot ${asked.method.toLowerCase()} path ${JSON.stringify(asked.path)}`,
      details: {},
    };
  }
  const { group, name = '' } = resource;
  const what = `${resource.resource}${group === '' ? '' : `.${group}`}${name === '' ? '' : ` ${JSON.stringify(name)}`}`;
  const where = resource.namespace === undefined ? 'at the cluster scope' : `in the namespace ${JSON.stringify(resource.namespace)}`;
  return {
    reason: 'Forbidden',
    message: `${what} is forbidden: User ${user} cannot ${verb} resource ${JSON.stringify(resource.resource)} in API group ${JSON.stringify(group)} ${where}`,
    details: { ...(name === '' ? {} : { name }), group, kind: resource.resource },
  };
}
