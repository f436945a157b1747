/**
 * Who may do what: members of system:masters everything; a certificate of a shard or a cache reads everything but views, and a shard's
 * writes its own shard; that of a syncer reads its view; whoever reads may ask what it may do itself; everyone else may only ask for health, and read
 * what RBAC says of a view (view-callers.ts).
 */
import { isMaster, mayRead, mayReadFor, mayWriteFor, type Caller } from '../domain/caller.js';
import type { Refusal } from '../domain/errors.js';
import type { ShardName } from '../domain/shard.js';
import type { ResourcePath, Verb } from './kube-request.js';
import { findReviewType } from './review-types.js';
import type { ViewPath } from './view-path.js';

export type AskedFor = Readonly<{
  path: string;
  method: string;
  shard: ShardName | '*' | undefined;
  resource: ResourcePath | undefined;
  verb: Verb | undefined;
  /** Undefined where the path is none of a view. */
  view?: ViewPath | undefined;
}>;

/** The refusal for a caller who may not, in Kubernetes' words; undefined for one who may. */
export function authorize(caller: Caller, asked: AskedFor): Refusal | undefined {
  return mayAsk(caller, asked) ? undefined : forbidden(caller, asked);
}

/** With GET, anything is a read. A write is one of kube's verbs on a resource of one shard; only masters write anything else, as shards. */
function mayAsk(caller: Caller, { method, shard, resource, verb, view }: AskedFor): boolean {
  if (isMaster(caller)) return true;
  if (view !== undefined) return view.kind === 'syncer' && mayReadFor(caller, view.id);
  if (verb === 'create' && resource !== undefined && findReviewType(resource) !== undefined) return mayRead(caller);
  if (method === 'GET' || method === 'HEAD') return mayRead(caller);
  return verb !== undefined && shard !== undefined && shard !== '*' && mayWriteFor(caller, shard);
}

function forbidden(caller: Caller, asked: AskedFor): Refusal {
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
