/**
 * Decides a PUT, and the result of a PATCH, against the object it replaces.
 *
 * U1 An update replaces exactly the state it was made from. The resourceVersion in its body must be
 *    the stored one, and the mutation expects that revision. Only a patch may leave the
 *    resourceVersion out.
 * U2 The stored uid, creationTimestamp and deletion members stay. The generation never falls, and
 *    stays when the body has none. An update that would begin a deletion is refused
 *    (meta-rules.ts).
 * U3 A body that changes nothing is no mutation. The caller compares the bodies, because that may
 *    take long.
 * U4 The key alone, from the URL, determines where the object is. An annotation that marks kept
 *    names is dropped, as from a push (KEPT-2); the caller sets the marks.
 */
import { compose, type MetadataStamp } from '../../json/compose.js';
import { badRequest, invalid, invalidValue, Refused } from '../../domain/errors.js';
import { nothingAdded } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { Body, StoredObject } from '../../domain/object.js';
import { attempt, type Parsed } from '../../domain/parsed.js';
import { formatApiVersion } from '../../domain/resource.js';
import { inVersion } from '../../json/splice.js';
import type { UpdateRequest } from '../../domain/write-request.js';
import { updateCauses } from './check-meta.js';
import { deletionCauses, plainCauses, StoredMeta } from './meta-rules.js';
import { confirmNamespace, namespaceStamp } from './object-namespace.js';
import { unmarked } from '../../json/kept-members.js';
import { pathOf, type ObjectMeta } from '../../json/object-meta.js';
import { readObject } from './read-object.js';
import { conflict } from './refusals.js';

export type UpdateInputs = Pick<UpdateRequest, 'type' | 'version' | 'mustNameRevision' | 'fieldValidation'>;

/** `stored`: the stored body in the mutation's version, for the caller's comparison (U3). */
export type AdmittedUpdate = Readonly<{ mutation: Extract<Mutation, { kind: 'put' }>; stored: Body; warnings: readonly string[] }>;

/** `added`: how much of the sent object the cache may have added. */
export function admitUpdate(bytes: Uint8Array, request: UpdateInputs, current: StoredObject, added = nothingAdded): Parsed<AdmittedUpdate> {
  return attempt(() => {
    const { type } = request;
    const { key } = current;
    const { text, meta, warnings } = readObject(bytes, request, added);
    const stored = new StoredMeta(current.body);
    confirmNamespace(key.namespace, meta.namespace);
    confirmName(key, meta.name);
    confirmUid(key, meta.uid, stored.uid);
    confirmResourceVersion(meta, request, current);

    const causes = [...updateCauses(meta, stored.generation, added.bytes), ...plainCauses(meta), ...deletionCauses(meta, stored)];
    if (causes.length > 0) throw new Refused(invalid({ group: type.group, kind: type.kind, name: key.name }, causes));

    const apiVersion = formatApiVersion(type.group, type.storageVersion);
    const metadata = { ...namespaceStamp(key.namespace, meta.namespace), ...keptStamp(meta, stored) };
    const body = compose(unmarked(text), { place: key, apiVersion, version: type.storageVersion, metadata });
    const mutation = { kind: 'put', key, body, path: pathOf(meta), expect: current.revision } as const;
    return { mutation, stored: inVersion(current.body, apiVersion, type.storageVersion), warnings };
  });
}

function confirmName({ name }: Key, inBody: string): void {
  if (inBody === name) return;
  const message = `the name of the object (${inBody}) does not match the name on the URL (${name})`;
  const missing = `the name of the object (${name} based on URL) was undeterminable: name must be provided`;
  throw new Refused(badRequest(inBody === '' ? missing : message));
}

function confirmUid(key: Key, inBody: string, stored: string): void {
  if (inBody === '' || inBody === stored) return;
  throw new Refused(conflict(key, `Precondition failed: UID in precondition: ${inBody}, UID in object meta: ${stored}`));
}

function confirmResourceVersion(
  { resourceVersion }: ObjectMeta,
  { mustNameRevision }: UpdateInputs,
  { key, resourceVersion: stored }: StoredObject,
): void {
  if (resourceVersion === stored) return;
  if (resourceVersion !== '') {
    throw new Refused(conflict(key));
  }
  if (!mustNameRevision) return;
  const subject = { group: key.resource.group, kind: key.resource.resource, name: key.name };
  throw new Refused(invalid(subject, [invalidValue('metadata.resourceVersion', 0n, 'must be specified for an update')]));
}

/**
 * The stored members that the update must keep. A member that is not stored is dropped (undefined).
 */
function keptStamp(meta: ObjectMeta, stored: StoredMeta): MetadataStamp {
  return {
    ...(meta.uid === '' && { uid: stored.text('uid') }),
    creationTimestamp: stored.text('creationTimestamp'),
    ...(meta.generation === 0n && { generation: stored.text('generation') }),
    deletionTimestamp: stored.text('deletionTimestamp'),
    deletionGracePeriodSeconds: stored.text('deletionGracePeriodSeconds'),
  };
}
