/**
 * PATCH (W12): the stored object, patched as a lossless tree, and written like a PUT. A patch that names no
 * resourceVersion is unconditional: when the object changes under it, it is applied again to what is there now.
 */
import { badRequest, Refused } from '../domain/errors.js';
import { applyJsonPatch, parseJsonPatch } from '../domain/json-patch.js';
import { parseJson } from '../domain/json-parser.js';
import { formatJson, isJsonObject, measureJson, type JsonTree } from '../domain/json-tree.js';
import { applyMergePatch } from '../domain/merge-patch.js';
import { mustParse } from '../domain/parsed.js';
import { applyStrategicMergePatch } from '../domain/strategic-merge-patch.js';
import { admitUpdate } from '../intake/admit-update.js';
import { objectAnswer } from './answer.js';
import { assertUtf8, mediaType, readBody, unsupportedMediaType } from './body.js';
import { answeredAs, formOf, type Answer, type Call, type KubePorts } from './call.js';
import { conflict, objectNotFound } from './kube-request.js';
import { wholeForm } from './object-form.js';
import { join } from './parts.js';
import { currentOf, keyOf, storeUpdate } from './update.js';
import { parseWriteOptions } from './write-options.js';

const triesMax = 5;
const jsonPatchType = 'application/json-patch+json';
const mergePatchType = 'application/merge-patch+json';
const strategicPatchType = 'application/strategic-merge-patch+json';

type Patch = (target: JsonTree) => JsonTree;

export async function patch(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const options = parseWriteOptions(call.query, 'PatchOptions');
  const key = keyOf(call);
  const apply = await readPatch(call, ports.limits.bodyBytesMax);
  const whole = wholeForm(call.type, call.path.version);

  for (let tries = 1; ; tries++) {
    const current = await currentOf(call, key, ports);
    const before = mustParse(parseJson(join(whole.single(current, current.resourceVersion))));
    const after = apply(before);
    if (measureJson(after, ports.limits.bodyBytesMax) > ports.limits.bodyBytesMax) {
      throw new Refused({ reason: 'RequestEntityTooLarge', message: `Request entity too large: limit is ${ports.limits.bodyBytesMax}` });
    }
    const bytes = Buffer.from(formatJson(after));
    const request = { type: call.type, version: call.path.version, key, requireResourceVersion: false, fieldValidation: options.fieldValidation };
    const admitted = mustParse(admitUpdate(bytes, request, current));
    const stored = await storeUpdate(admitted, current, ports, options);
    if (stored === 'absent') throw new Refused(objectNotFound(call.path, key.name));
    if (stored !== 'changed') return objectAnswer(200, stored, form, answered.encoding, admitted.warnings);
    if (tries === triesMax || resourceVersionOf(after) !== resourceVersionOf(before)) throw new Refused(conflict(call.path, key.name));
  }
}

async function readPatch({ request, type }: Call, bytesMax: number): Promise<Patch> {
  const accepted = [jsonPatchType, mergePatchType, ...(type.strategicMerge ? [strategicPatchType] : [])];
  const media = mediaType(request);
  if (!accepted.includes(media)) throw unsupportedMediaType(accepted.join(', '));
  const bytes = await readBody(request, bytesMax);
  assertUtf8(bytes);
  const tree = mustParse(parseJson(bytes));
  if (media === jsonPatchType) {
    const operations = mustParse(parseJsonPatch(tree));
    return (target) => mustParse(applyJsonPatch(target, operations));
  }
  if (!isJsonObject(tree)) throw new Refused(badRequest('a patch must be an object'));
  if (media === mergePatchType) return (target) => applyMergePatch(target, tree);
  return (target) => mustParse(applyStrategicMergePatch(target, tree, type.group));
}

function resourceVersionOf(tree: JsonTree): JsonTree | undefined {
  const metadata = isJsonObject(tree) ? tree.get('metadata') : undefined;
  return isJsonObject(metadata) ? metadata.get('resourceVersion') : undefined;
}
