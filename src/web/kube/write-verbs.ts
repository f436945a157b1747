import { Refused } from '../../domain/errors.js';
import type { PatchLanguage } from '../../domain/heavy-task.js';
import { addedMax } from '../../domain/kept-names.js';
import type { Intake } from '../../domain/ports.js';
import type { Stored, UpdateRequest } from '../../domain/write-request.js';
import { uidOf } from '../../domain/object-metadata.js';
import type { StoredObject } from '../../domain/object.js';
import { encoded, objectAnswer } from '../formats/answer.js';
import { assertUtf8, mediaType, readBody, readJsonBody, unsupportedMediaType } from '../formats/body.js';
import { fullForm } from '../formats/object-form.js';
import { encode, join } from '../formats/parts.js';
import { deleted } from '../formats/status.js';
import { answeredAs, formOf, keyOf, writeTargetOf, type Answer, type Call, type KubePorts } from './call.js';
import { objectNotFound } from './kube-request.js';
import { duplicatesIn, parseWriteOptions, readDeleteOptions } from './write-options.js';

export async function create(call: Call, { intake, clock, limits }: KubePorts): Promise<Answer> {
  const { type, path, identity } = call;
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, clock);
  const options = parseWriteOptions(call.query, 'CreateOptions');
  const place = writeTargetOf(call);
  // The URL may omit the namespace if a ClusterCachedResource declares the type; then the body has
  // it.
  const isMisplaced = type.namespaced !== (path.namespace !== undefined);
  if (isMisplaced && (identity === '' || path.namespace !== undefined)) throw new Refused(objectNotFound(path, ''));

  const bytes = await readJsonBody(call.exchange, limits.bodyBytesMax, call.heavy, duplicatesIn(options));
  const { object, warnings } = await intake.create(bytes, {
    ...options,
    ...place,
    caller: call.exchange.caller,
    type,
    identity,
    version: path.version,
    namespace: path.namespace,
  });
  return objectAnswer(201, object, form, { encoding: answered.encoding, heavy: call.heavy }, warnings);
}

export async function update(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const options = parseWriteOptions(call.query, 'UpdateOptions');
  const key = keyOf(call);
  const bytes = await readJsonBody(call.exchange, ports.limits.bodyBytesMax, call.heavy, duplicatesIn(options));
  const { object, warnings } = await changed(call, ports, { ...options, key, mustNameRevision: true }, () => bytes);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy: call.heavy }, warnings);
}

/**
 * PATCH: patches the stored object as a lossless tree, and writes the result like a PUT. A patch
 * without a resourceVersion is unconditional: if the object changes meanwhile, the patch is applied
 * again to the new state.
 */
export async function patch(call: Call, ports: KubePorts): Promise<Answer> {
  const { type, path, heavy } = call;
  const { bodyBytesMax: bytesMax } = ports.limits;
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const language = patchLanguage(call);
  const options = parseWriteOptions(call.query, 'PatchOptions');
  const key = keyOf(call);
  const bytes = await readBody(call.exchange, bytesMax);
  assertUtf8(bytes);
  const whole = fullForm(type, path.version);
  const duplicates = duplicatesIn(options);
  const patched = (current: StoredObject): Promise<Uint8Array> =>
    heavy.run({
      kind: 'patch',
      target: join(whole.single(current, current.resourceVersion)),
      patch: bytes,
      language,
      bytesMax: bytesMax + addedMax.bytes,
      duplicates,
    });
  const { object, warnings } = await changed(call, ports, { ...options, key, mustNameRevision: false }, patched);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy }, warnings);
}

function changed(
  { exchange, type, path, heavy }: Call,
  { intake }: KubePorts,
  asked: Omit<UpdateRequest, 'caller' | 'asker' | 'type' | 'version'>,
  textFor: Parameters<Intake['update']>[0],
): Promise<Stored> {
  return intake.update(textFor, { ...asked, caller: exchange.caller, asker: exchange, type, version: path.version }, heavy);
}

/**
 * The caller checks this before any read, because after 415 the client tries another patch type.
 */
function patchLanguage({ request, type }: Call): PatchLanguage {
  const taken = new Map<string, PatchLanguage>([
    ['application/json-patch+json', { kind: 'json' }],
    ['application/merge-patch+json', { kind: 'merge' }],
  ]);
  if (type.strategicMerge)
    taken.set('application/strategic-merge-patch+json', { kind: 'strategic', group: type.group, resource: type.resource });
  const language = taken.get(mediaType(request));
  if (language === undefined) throw unsupportedMediaType([...taken.keys()].join(', '));
  return language;
}

/** DELETE of one object. It takes effect at once, even if the object has finalizers. */
export async function remove(call: Call, { intake, limits }: KubePorts): Promise<Answer> {
  const { type, path, exchange, heavy } = call;
  const { encoding } = answeredAs(call, 'one');
  const key = keyOf(call);
  const options = await readDeleteOptions(call, limits.bodyBytesMax);
  const object = await intake.delete({ ...options, caller: exchange.caller, asker: exchange, type, key });
  const status = deleted({ name: key.name, group: path.group, kind: path.resource, uid: uidOf(object.body) });
  return encoded(200, [encode(status)], { encoding, heavy });
}
