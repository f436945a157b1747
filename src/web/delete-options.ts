/**
 * The DeleteOptions of a DELETE: from its body, which kcp sends without a Content-Type, or from the query when there is
 * none (W16). Finalizers, propagation and grace change nothing here: an object goes at once (W15).
 */
import { badRequest, Refused } from '../domain/errors.js';
import { assertUtf8, bytesMaxOf, mediaType, readBody, unsupportedMediaType } from './body.js';
import { parseWriteOptions } from './write-options.js';
import { parseJson } from '../domain/json-parser.js';
import { parseYaml } from '../domain/yaml.js';
import { isJsonArray, isJsonObject, type JsonObject, type JsonTree } from '../domain/json-tree.js';
import { mustParse } from '../domain/parsed.js';
import type { Exchange } from '../http/exchange.js';

export type DeleteOptions = Readonly<{ dryRun: boolean; uid: string | undefined; resourceVersion: string | undefined }>;

const decoder = new TextDecoder();

export async function readDeleteOptions(exchange: Exchange, query: URLSearchParams, bytesMax: number): Promise<DeleteOptions> {
  const type = mediaType(exchange.request);
  const bytes = await readBody(exchange, bytesMaxOf(type, bytesMax));
  if (bytes.length === 0) return { dryRun: parseWriteOptions(query, 'DeleteOptions').dryRun, uid: undefined, resourceVersion: undefined };
  assertUtf8(bytes);
  const options = parseBody(bytes, type);
  const dryRun = options.get('dryRun');
  const asked = new URLSearchParams(
    dryRun !== undefined && isJsonArray(dryRun) ? dryRun.map((each): [string, string] => ['dryRun', String(each)]) : [],
  );
  const preconditions = options.get('preconditions');
  const named = (name: string): string | undefined => (isJsonObject(preconditions) ? textOf(preconditions.get(name), name) : undefined);
  return { dryRun: parseWriteOptions(asked, 'DeleteOptions').dryRun, uid: named('uid'), resourceVersion: named('resourceVersion') };
}

function parseBody(bytes: Uint8Array, type: string): JsonObject {
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType('application/json, application/yaml');
  const tree: JsonTree = mustParse(type === 'application/yaml' ? parseYaml(decoder.decode(bytes)) : parseJson(bytes));
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
