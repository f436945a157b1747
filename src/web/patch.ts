/**
 * PATCH: patches the stored object as a lossless tree, and writes it like a PUT. A patch without a
 * resourceVersion is unconditional: if the object changes meanwhile, the patch is applied again to
 * the new state.
 */
import type { PatchLanguage } from '../domain/heavy-task.js';
import type { StoredObject } from '../domain/object.js';
import { objectAnswer } from './answer.js';
import { assertUtf8, mediaType, readBody, unsupportedMediaType } from './body.js';
import { answeredAs, formOf, keyOf, type Answer, type Call, type KubePorts } from './call.js';
import { wholeForm } from './object-form.js';
import { join } from './parts.js';
import { duplicatesIn, parseWriteOptions } from './write-options.js';

export async function patch(call: Call, { intake, clock, limits }: KubePorts): Promise<Answer> {
  const { type, path, heavy } = call;
  const { bodyBytesMax: bytesMax } = limits;
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, clock);
  const language = patchLanguage(call);
  const options = parseWriteOptions(call.query, 'PatchOptions');
  const key = keyOf(call);
  const bytes = await readBody(call.exchange, bytesMax);
  assertUtf8(bytes);
  const whole = wholeForm(type, path.version);
  const duplicates = duplicatesIn(options);
  const patched = (current: StoredObject): Promise<Uint8Array> =>
    heavy.run({
      kind: 'patch',
      target: join(whole.single(current, current.resourceVersion)),
      patch: bytes,
      language,
      bytesMax,
      duplicates,
    });
  const { exchange } = call;
  const asked = {
    ...options,
    caller: exchange.caller,
    asker: exchange,
    type,
    version: path.version,
    key,
    mustNameRevision: false,
  };
  const { object, warnings } = await intake.update(patched, asked, heavy);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy }, warnings);
}

/** Checked before anything is read: after 415 the client tries another patch type. */
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
