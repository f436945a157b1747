/**
 * PATCH (W12): the stored object, patched as a lossless tree, and written like a PUT. A patch that names no
 * resourceVersion is unconditional: when the object changes under it, it is applied again to what is there now.
 */
import { badRequest, Refused } from '../domain/errors.js';
import { applyJsonPatch, parseJsonPatch } from '../domain/json-patch.js';
import { parseJson } from '../domain/json-parser.js';
import { formatJson, isJsonObject, measureJson, type JsonTree } from '../domain/json-tree.js';
import { applyMergePatch } from '../domain/merge-patch.js';
import type { StoredObject } from '../domain/object.js';
import { mustParse } from '../domain/parsed.js';
import { applyStrategicMergePatch } from '../domain/strategic-merge-patch.js';
import { objectAnswer } from './answer.js';
import { assertUtf8, mediaType, readBody, tooLarge, unsupportedMediaType } from './body.js';
import { answeredAs, formOf, keyOf, type Answer, type Call, type KubePorts } from './call.js';
import { wholeForm } from './object-form.js';
import { join } from './parts.js';
import { parseWriteOptions } from './write-options.js';

const jsonPatchType = 'application/json-patch+json';
const mergePatchType = 'application/merge-patch+json';
const strategicPatchType = 'application/strategic-merge-patch+json';

type Patch = (target: JsonTree) => JsonTree;

export async function patch(call: Call, { intake, clock, limits }: KubePorts): Promise<Answer> {
  const { type, path } = call;
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, clock);
  const media = patchType(call);
  const options = parseWriteOptions(call.query, 'PatchOptions');
  const key = keyOf(call);
  const apply = await readPatch(call, media, limits.bodyBytesMax);
  const whole = wholeForm(type, path.version);
  const patched = (current: StoredObject): Uint8Array => {
    const after = apply(mustParse(parseJson(join(whole.single(current, current.resourceVersion)))));
    if (measureJson(after, limits.bodyBytesMax) > limits.bodyBytesMax) throw tooLarge(limits.bodyBytesMax);
    return Buffer.from(formatJson(after));
  };
  const { object, warnings } = await intake.update(patched, { ...options, type, version: path.version, key, mustNameRevision: false });
  return objectAnswer(200, object, form, answered.encoding, warnings);
}

/** The kind of patch, asked for first: a client that is answered 415 tries another one. */
function patchType({ request, type }: Call): string {
  const accepted = [jsonPatchType, mergePatchType, ...(type.strategicMerge ? [strategicPatchType] : [])];
  const media = mediaType(request);
  if (!accepted.includes(media)) throw unsupportedMediaType(accepted.join(', '));
  return media;
}

async function readPatch({ exchange, type }: Call, media: string, bytesMax: number): Promise<Patch> {
  const bytes = await readBody(exchange, bytesMax);
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
