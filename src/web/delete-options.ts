/**
 * The DeleteOptions of a DELETE, from its query and its body; kcp sends the body without a
 * Content-Type. Kubernetes ignores the query if there is a body. This server uses both, and they
 * may not contradict each other (OPTION-1, OPTION-2).
 */
import { badRequest, Refused } from '../domain/errors.js';
import { mustParse } from '../domain/parsed.js';
import { parseJson } from '../json/json-parser.js';
import { isJsonArray, isJsonNumber, isJsonObject, type JsonObject, type JsonTree } from '../json/json-tree.js';
import { assertUtf8, mediaType, readBody, unsupportedMediaType } from './body.js';
import type { Call } from './call.js';
import { checkRepeated } from './known-options.js';
import { parseDeleteOptions, type DeleteOptions } from './write-options.js';

/** So short that the serving thread can read it. */
const optionsBytesMax = 16 * 1024;

export async function readDeleteOptions({ verb, request, exchange, query, heavy }: Call, bodyBytesMax: number): Promise<DeleteOptions> {
  const bytesMax = Math.min(bodyBytesMax, optionsBytesMax);
  const type = mediaType(request);
  const bytes = await readBody(exchange, bytesMax);
  if (bytes.length === 0) return parseDeleteOptions(query);
  assertUtf8(bytes);
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType('application/json, application/yaml');
  const json =
    type === 'application/yaml' ? await heavy.run({ kind: 'json from yaml', text: bytes, bytesMax, duplicates: 'refused' }) : bytes;
  const tree = mustParse(parseJson(json, { duplicates: 'refused' }));
  if (!isJsonObject(tree)) throw new Refused(badRequest('DeleteOptions must be an object'));
  // If there is a body, the resourceVersion in a collection's query is an option of its list.
  const inQuery = [...query].filter(([name]) => verb === 'delete' || name !== 'resourceVersion');
  const asked = new URLSearchParams([...inQuery, ...optionsIn(tree, bodyMembers)]);
  checkRepeated(asked);
  return parseDeleteOptions(asked);
}

type Options = [name: string, text: string][];

/** Turns a member into query options; undefined if its value has the wrong type. */
type Member = (name: string, value: JsonTree) => Options | undefined;

const text: Member = (name, value) => (typeof value === 'string' ? [[name, value]] : undefined);
const truth: Member = (name, value) => (typeof value === 'boolean' ? [[name, String(value)]] : undefined);
const integer: Member = (name, value) => (isJsonNumber(value) && /^-?\d+$/.test(value.number) ? [[name, value.number]] : undefined);
/** Go reads a null in a list of strings as the empty string. */
const texts: Member = (name, value) => {
  if (!isJsonArray(value)) return undefined;
  const all = value.map((each) => each ?? '');
  return all.every((each) => typeof each === 'string') ? all.map((each) => [name, each]) : undefined;
};
const kind: Member = (_, value) => (value === 'DeleteOptions' || value === '' ? [] : undefined);
/** DeleteOptions exist in every API group. */
const apiVersion: Member = (_, value) => (typeof value === 'string' && /^[^/]*(?:\/[^/]*)?$/.test(value) ? [] : undefined);
const preconditionMembers = new Map<string, Member>([
  ['uid', text],
  ['resourceVersion', text],
]);
const preconditions: Member = (_, value) => (isJsonObject(value) ? optionsIn(value, preconditionMembers) : undefined);
const bodyMembers = new Map<string, Member>([
  ['kind', kind],
  ['apiVersion', apiVersion],
  ['dryRun', texts],
  ['gracePeriodSeconds', integer],
  ['ignoreStoreReadErrorWithClusterBreakingPotential', truth],
  ['orphanDependents', truth],
  ['preconditions', preconditions],
  ['propagationPolicy', text],
]);

/** Throws Refused(400). A null counts as absent. */
function optionsIn(object: JsonObject, members: ReadonlyMap<string, Member>): Options {
  return [...object].flatMap(([name, value]) => {
    const member = members.get(name);
    if (member === undefined) throw new Refused(badRequest(`unknown field ${JSON.stringify(name)} in DeleteOptions`));
    const options = value === null ? [] : member(name, value);
    if (options === undefined)
      throw new Refused(badRequest(`the field ${JSON.stringify(name)} of DeleteOptions has a value that it cannot have`));
    return options;
  });
}
