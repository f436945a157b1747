/** Answers made of JSON text, converted to YAML on request. */
import type { HeavyWork } from '../../domain/ports.js';
import type { StoredObject } from '../../domain/object.js';
import type { Answered } from './accept.js';
import type { Answer } from '../kube/call.js';
import type { ObjectForm } from './object-form.js';
import { join, lengthOf, type Part } from './parts.js';

const yamlBytesMax = 256 * 1024;

export function jsonAnswer(code: number, text: string): Answer {
  return { kind: 'bytes', code, contentType: 'application/json', parts: [Buffer.from(text)] };
}

/** The negotiated encoding, and the worker that converts to it. */
export type Writing = Readonly<{ encoding: Answered['encoding']; heavy: HeavyWork }>;

export function objectAnswer(
  code: number,
  object: StoredObject,
  form: ObjectForm,
  writing: Writing,
  warnings: readonly string[] = [],
): Promise<Answer> {
  return encoded(code, form.single(object, object.resourceVersion), writing, warnings);
}

/**
 * An answer that is too long for YAML, or cannot be converted, stays JSON. A refusal would be
 * wrong: a write is already stored, and its client would repeat it. JSON is never sent as
 * application/yaml, because Go's YAML decoder refuses some JSON: `"\/"`, half a surrogate pair, a
 * name of more than 1,024 characters.
 */
export async function encoded(
  code: number,
  json: readonly Part[],
  { encoding, heavy }: Writing,
  warnings: readonly string[] = [],
): Promise<Answer> {
  const isShort = encoding === 'yaml' && lengthOf(json) <= yamlBytesMax;
  const yaml = isShort ? await heavy.run({ kind: 'yaml from json', text: join(json) }).catch(() => undefined) : undefined;
  const answer = yaml === undefined ? { contentType: 'application/json', parts: json } : { contentType: 'application/yaml', parts: [yaml] };
  return { kind: 'bytes', code, ...answer, warnings };
}
