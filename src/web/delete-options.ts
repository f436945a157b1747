/**
 * The DeleteOptions of a DELETE: from its body, which kcp sends without a Content-Type, or from the query when there is
 * none. Finalizers, propagation and grace change nothing here: an object goes at once.
 */
import { badRequest, Refused } from '../domain/errors.js';
import { assertUtf8, mediaType, readBody, unsupportedMediaType } from './body.js';
import type { Call } from './call.js';
import { parseWriteOptions } from './write-options.js';
import { parseJson } from '../json/json-parser.js';
import { isJsonArray, isJsonObject, type JsonObject, type JsonTree } from '../json/json-tree.js';
import { mustParse } from '../domain/parsed.js';

export type DeleteOptions = Readonly<{ dryRun: boolean; uid: string | undefined; resourceVersion: string | undefined }>;

/** They are a few words, and are read in the serving thread. */
const optionsBytesMax = 16 * 1024;

export async function readDeleteOptions({ request, exchange, query, heavy }: Call, bodyBytesMax: number): Promise<DeleteOptions> {
  const bytesMax = Math.min(bodyBytesMax, optionsBytesMax);
  const type = mediaType(request);
  const bytes = await readBody(exchange, bytesMax);
  if (bytes.length === 0) return { dryRun: parseWriteOptions(query, 'DeleteOptions').dryRun, uid: undefined, resourceVersion: undefined };
  assertUtf8(bytes);
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType('application/json, application/yaml');
  const options = parseOptions(type === 'application/yaml' ? await heavy.run({ kind: 'json from yaml', text: bytes, bytesMax }) : bytes);
  const dryRun = options.get('dryRun');
  const asked = new URLSearchParams(
    dryRun !== undefined && isJsonArray(dryRun) ? dryRun.map((each): [string, string] => ['dryRun', String(each)]) : [],
  );
  const preconditions = options.get('preconditions');
  const named = (name: string): string | undefined => (isJsonObject(preconditions) ? textOf(preconditions.get(name), name) : undefined);
  return { dryRun: parseWriteOptions(asked, 'DeleteOptions').dryRun, uid: named('uid'), resourceVersion: named('resourceVersion') };
}

function parseOptions(json: Uint8Array): JsonObject {
  const tree: JsonTree = mustParse(parseJson(json));
  if (!isJsonObject(tree)) throw new Refused(badRequest('DeleteOptions must be an object'));
  const kind = tree.get('kind');
  if (kind !== undefined && kind !== 'DeleteOptions')
    throw new Refused(badRequest('the object provided is unrecognized (must be of type DeleteOptions)'));
  return tree;
}

function textOf(value: JsonTree | undefined, name: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw new Refused(badRequest(`preconditions.${name} must be a string`));
  return value;
}
