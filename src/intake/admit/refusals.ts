/** Refusals of writes, in the words of Kubernetes' API server. */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import type { Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { formatGroupResource } from '../../domain/resource.js';

const modified = 'the object has been modified; please apply your changes to the latest version and try again';

/** By default, `why` says that another write came first. */
export function conflict({ resource: { group, resource }, name }: Key, why = modified): Refusal {
  return {
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${formatGroupResource({ group, resource })} ${JSON.stringify(name)}: ${why}`,
    details: { name, ...(group !== '' && { group }), kind: resource },
  };
}

export function notFound({ resource: { group, resource }, name }: Key): Refusal {
  return {
    reason: 'NotFound',
    message: `${formatGroupResource({ group, resource })} ${JSON.stringify(name)} not found`,
    details: { name, ...(group !== '' && { group }), kind: resource },
  };
}

export function alreadyExists({ resource: { group, resource }, name }: Key, retry: Readonly<{ retryAfterSeconds?: number }> = {}): Refusal {
  return {
    reason: 'AlreadyExists',
    message: `${formatGroupResource({ group, resource })} ${JSON.stringify(name)} already exists`,
    details: { name, ...(group !== '' && { group }), kind: resource, ...retry },
  };
}

/**
 * The refusal of a delete whose precondition fails. Kubernetes names the kind here, not the plural.
 */
export function preconditionFailed(
  { type, current, held }: Readonly<{ type: ServedType; current: StoredObject; held: string }>,
  { uid, resourceVersion }: Readonly<{ uid: string | undefined; resourceVersion: string | undefined }>,
): Refusal | undefined {
  const { group, kind } = type;
  const { name } = current.key;
  const refuse = (why: string): Refusal => ({
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${formatGroupResource({ group, resource: kind })} ${JSON.stringify(name)}: ${why}`,
    details: { name, ...(group !== '' && { group }), kind },
  });
  if (uid !== undefined && uid !== held) {
    return refuse(
      `the UID in the precondition (${uid}) does not match the UID in record (${held}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== current.resourceVersion) {
    return refuse(
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${current.resourceVersion}). The object might have been modified`,
    );
  }
  return undefined;
}

/** For a namespaced type without a namespace: Kubernetes has no such URL. */
export function noSuchResource({ group, resource }: Readonly<{ group: string; resource: string }>): Refusal {
  return {
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: { ...(group !== '' && { group }), kind: resource },
  };
}
