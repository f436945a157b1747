/** DELETE of one object (W15, W16): at once, whatever its finalizers say. */
import { Refused, type Refusal } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import { formatGroupResource } from '../domain/resource.js';
import { jsonAnswer } from './answer.js';
import type { Answer, Call, KubePorts } from './call.js';
import { readDeleteOptions, type DeleteOptions } from './delete-options.js';
import { objectNotFound } from './kube-request.js';
import { deleted } from './status.js';
import { currentOf, keyOf } from './update.js';

export async function remove(call: Call, ports: KubePorts): Promise<Answer> {
  const key = keyOf(call);
  const options = await readDeleteOptions(call.request, call.query, ports.limits.bodyBytesMax);
  for (;;) {
    const current = await currentOf(call, key, ports);
    checkPreconditions(call, current, options);
    if (options.dryRun) return answer(call, current);
    const isConditional = options.uid !== undefined || options.resourceVersion !== undefined;
    const outcome = await ports.writer.submit({ kind: 'delete', key, expect: isConditional ? current.revision : 'any' });
    if (outcome.kind === 'unavailable') throw new Refused(outcome.refusal);
    if (outcome.kind === 'written') return answer(call, outcome.object);
    if (outcome.why === 'absent') throw new Refused(objectNotFound(call.path, key.name));
    // It changed between the check and its turn: check again.
  }
}

/** The uid of a stored object; every body has one (W4). */
export function uidOf({ body }: StoredObject): string {
  const { metadataStart, metadataEnd } = body.marks;
  const metadata = JSON.parse(Buffer.from(body.bytes.subarray(metadataStart, metadataEnd)).toString()) as { uid?: unknown };
  return String(metadata.uid ?? '');
}

function answer({ path }: Call, object: StoredObject): Answer {
  return jsonAnswer(200, deleted({ name: object.key.name, group: path.group, kind: path.resource, uid: uidOf(object) }));
}

function checkPreconditions(call: Call, current: StoredObject, { uid, resourceVersion }: DeleteOptions): void {
  const held = uidOf(current);
  if (uid !== undefined && uid !== held) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${held}). The object might have been deleted and then recreated`;
    throw new Refused(preconditionFailed(call, current, why));
  }
  if (resourceVersion !== undefined && resourceVersion !== current.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${current.resourceVersion}). The object might have been modified`;
    throw new Refused(preconditionFailed(call, current, why));
  }
}

/** Upstream names the Kind here, not the plural (E3a). */
function preconditionFailed({ type }: Call, { key }: StoredObject, why: string): Refusal {
  const { group, kind } = type;
  return {
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${formatGroupResource({ group, resource: kind })} ${JSON.stringify(key.name)}: ${why}`,
    details: { name: key.name, group, kind },
  };
}
