/** Answers made of JSON text, turned into YAML or indented where the client asked for it. */
import { formatYaml } from '../domain/yaml.js';
import { parseJson } from '../domain/json-parser.js';
import { mustParse } from '../domain/parsed.js';
import type { StoredObject } from '../domain/object.js';
import type { Answered } from './accept.js';
import type { Answer } from './call.js';
import type { ObjectForm } from './object-form.js';
import { join } from './parts.js';

const yamlBytesMax = 256 * 1024;

export function jsonAnswer(code: number, text: string): Answer {
  return { kind: 'bytes', code, contentType: 'application/json', bytes: Buffer.from(text) };
}

/** One object in the form and encoding that was negotiated. */
export function objectAnswer(
  code: number,
  object: StoredObject,
  form: ObjectForm,
  encoding: Answered['encoding'],
  warnings: readonly string[] = [],
): Answer {
  return encoded(code, join(form.single(object, object.resourceVersion)), encoding, warnings);
}

/** JSON text is YAML as well: what is too long to be written anew within a tick stays as it is. */
export function encoded(code: number, json: Uint8Array, encoding: Answered['encoding'], warnings: readonly string[] = []): Answer {
  if (encoding === 'json' || json.length > yamlBytesMax)
    return { kind: 'bytes', code, contentType: `application/${encoding}`, bytes: json, warnings };
  return { kind: 'bytes', code, contentType: 'application/yaml', bytes: Buffer.from(formatYaml(mustParse(parseJson(json)))), warnings };
}
