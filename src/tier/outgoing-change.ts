/** Turns objects and changes into items of a link's frames. */
import type { Change } from '../domain/change.js';
import type { StoredObject } from '../domain/object.js';
import type { Outgoing } from '../sender/source.js';

/**
 * `sourceVersion` is the revision here, for people who read the frames. Positions are sent with
 * `progress`.
 */
export function outgoingObject({ key: { cluster, namespace, name }, body, resourceVersion }: StoredObject): Outgoing {
  return { kind: 'put', version: body.version, object: { cluster, namespace, name, sourceVersion: resourceVersion, body: body.bytes } };
}

/** `came` undefined: the object does not cross any more, whether or not it was deleted. */
export function outgoingChange({ key: { cluster, namespace, name } }: Pick<Change, 'key'>, came: StoredObject | undefined): Outgoing {
  return came === undefined ? { kind: 'delete', key: { cluster, namespace, name } } : outgoingObject(came);
}
