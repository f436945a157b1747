/** Answers made of JSON text, turned into YAML or indented where the client asked for it. */
import type { HeavyWork } from '../domain/ports.js';
import type { StoredObject } from '../domain/object.js';
import type { Answered } from './accept.js';
import type { Answer } from './call.js';
import type { ObjectForm } from './object-form.js';
import { join, lengthOf, type Part } from './parts.js';

const yamlBytesMax = 256 * 1024;

export function jsonAnswer(code: number, text: string): Answer {
  return { kind: 'bytes', code, contentType: 'application/json', parts: [Buffer.from(text)] };
}

/** How an answer is written: the encoding that was negotiated, and who does it. */
export type Writing = Readonly<{ encoding: Answered['encoding']; heavy: HeavyWork }>;

/** One object in the form and encoding that was negotiated. */
export function objectAnswer(
  code: number,
  object: StoredObject,
  form: ObjectForm,
  writing: Writing,
  warnings: readonly string[] = [],
): Promise<Answer> {
  return encoded(code, form.single(object, object.resourceVersion), writing, warnings);
}

/** JSON text is YAML as well: what would take too long to convert stays as it is. */
export async function encoded(
  code: number,
  json: readonly Part[],
  { encoding, heavy }: Writing,
  warnings: readonly string[] = [],
): Promise<Answer> {
  const isWritten = encoding === 'yaml' && lengthOf(json) <= yamlBytesMax;
  const parts = isWritten ? [await heavy.run({ kind: 'yaml from json', text: join(json) })] : json;
  return { kind: 'bytes', code, contentType: `application/${encoding}`, parts, warnings };
}
