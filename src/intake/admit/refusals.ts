/** Refusals of writes, in the words of Kubernetes' API server. */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import type { Reason, Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { formatGroupResource } from '../../domain/resource.js';

const modified = 'the object has been modified; please apply your changes to the latest version and try again';

/** By default, `why` says that another write came first. */
export function conflict(subject: Subject, why = modified): Refusal {
  return refusalOf('Conflict', subject, (text) => `Operation cannot be fulfilled on ${text}: ${why}`);
}

export function notFound(key: Key): Refusal {
  return refusalOf('NotFound', key, (text) => `${text} not found`);
}

export function alreadyExists(key: Key, retry: Readonly<{ retryAfterSeconds?: number }> = {}): Refusal {
  const refusal = refusalOf('AlreadyExists', key, (text) => `${text} already exists`);
  return { ...refusal, details: { ...refusal.details, ...retry } };
}

type Subject = Readonly<{ resource: Readonly<{ group: string; resource: string }>; name: string }>;

function refusalOf(reason: Reason, { resource: { group, resource }, name }: Subject, say: (subject: string) => string): Refusal {
  const message = say(`${formatGroupResource({ group, resource })} ${JSON.stringify(name)}`);
  return { reason, message, details: { name, ...(group !== '' && { group }), kind: resource } };
}

/**
 * The refusal of a delete whose precondition fails. Kubernetes names the kind here, not the plural.
 */
export function preconditionFailed(
  { type, current, held }: Readonly<{ type: ServedType; current: StoredObject; held: string }>,
  { uid, resourceVersion }: Readonly<{ uid: string | undefined; resourceVersion: string | undefined }>,
): Refusal | undefined {
  const { group, kind } = type;
  const refuse = (why: string): Refusal => conflict({ resource: { group, resource: kind }, name: current.key.name }, why);
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
