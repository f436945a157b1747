/** PUT of a whole object (W7–W9). What changes nothing is answered with the object as it is: no revision, no event. */
import { Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import { mustParse } from '../domain/parsed.js';
import { admitUpdate, type AdmittedUpdate } from '../intake/admit-update.js';
import { objectAnswer } from './answer.js';
import { readJsonBody } from './body.js';
import { answeredAs, formOf, namespaceOf, placeOf, type Answer, type Call, type KubePorts } from './call.js';
import { unstored } from './create.js';
import { conflict, objectNotFound } from './kube-request.js';
import { parseWriteOptions, type WriteOptions } from './write-options.js';

export async function update(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const options = parseWriteOptions(call.query, 'UpdateOptions');
  const key = keyOf(call);
  const bytes = await readJsonBody(call.request, ports.limits.bodyBytesMax);
  const current = await currentOf(call, key, ports);
  const admitted = mustParse(admitUpdate(bytes, { type: call.type, version: call.path.version, key, requireResourceVersion: true, fieldValidation: options.fieldValidation }, current));
  const stored = await storeUpdate(admitted, current, ports, options);
  if (stored === 'changed') throw new Refused(conflict(call.path, key.name));
  if (stored === 'absent') throw new Refused(objectNotFound(call.path, key.name));
  return objectAnswer(200, stored, form, answered.encoding, admitted.warnings);
}

/** The key a write on one object names. Throws Refused: 400 for wildcards, 404 for a subresource or the wrong scope. */
export function keyOf(call: Call): Key {
  const { type, path, identity } = call;
  const { shard, cluster } = placeOf(call);
  const namespace = namespaceOf(call);
  const name = path.name ?? '';
  if (path.subresource !== undefined) throw new Refused(objectNotFound(path, name));
  return { resource: { group: type.group, resource: type.resource, identity }, shard, cluster, namespace, name };
}

export async function currentOf({ path }: Call, key: Key, { objects }: KubePorts): Promise<StoredObject> {
  const current = await objects.get(key);
  if (current === undefined) throw new Refused(objectNotFound(path, key.name));
  return current;
}

/** Stores what an update changes; says why when the object is not what it was. */
export async function storeUpdate(admitted: AdmittedUpdate, current: StoredObject, { writer }: KubePorts, { dryRun }: WriteOptions): Promise<StoredObject | 'changed' | 'absent'> {
  if (admitted.kind === 'unchanged') return current;
  if (dryRun) return unstored(admitted.mutation, current.resourceVersion);
  const outcome = await writer.submit(admitted.mutation);
  if (outcome.kind === 'unavailable') throw new Refused(outcome.refusal);
  if (outcome.kind === 'written') return outcome.object;
  return outcome.why === 'absent' ? 'absent' : 'changed';
}
