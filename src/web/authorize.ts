/** Who may do what (D8, P16): members of system:masters everything, everyone else nothing but ask for health. */
import { isMaster, type Caller } from '../domain/caller.js';
import type { Refusal } from '../domain/errors.js';
import type { ResourcePath, Verb } from './kube-request.js';

/** The refusal for a caller who may not, in Kubernetes' words; undefined for one who may. */
export function authorize(
  caller: Caller,
  asked: Readonly<{ path: string; method: string; resource: ResourcePath | undefined; verb: Verb | undefined }>,
): Refusal | undefined {
  if (isMaster(caller)) return undefined;
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
