/** The options of a write: from its query and, for a DELETE, also from its body. */
import { badRequest, invalidValue, Refused, tooLong, type Cause } from '../../domain/errors.js';
import type { Duplicates } from '../../domain/heavy-task.js';
import { mustParse } from '../../domain/parsed.js';
import type { FieldValidation } from '../../domain/write-request.js';
import { parseJson } from '../../json/json-parser.js';
import { isJsonArray, isJsonNumber, isJsonObject, type JsonObject, type JsonTree } from '../../json/json-tree.js';
import { assertUtf8, mediaType, readBody, unsupportedMediaType } from '../formats/body.js';
import type { Call } from './call.js';
import { checkRepeated } from './known-options.js';
import { isTrue } from './kube-request.js';
import { forbidden, invalidOptions, notSupported, parseInteger } from './list-options.js';

export type WriteOptions = Readonly<{ dryRun: boolean; fieldValidation: FieldValidation }>;

export type DeleteOptions = Readonly<{ dryRun: boolean; uid: string | undefined; resourceVersion: string | undefined }>;

const fieldManagerBytesMax = 128;
/** Accepts what Go's unicode.IsPrint accepts. */
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;
const fieldValidations = ['Ignore', 'Strict', 'Warn'];
const propagationPolicies = ['Foreground', 'Background', 'Orphan'];
const unsafeDelete = 'ignoreStoreReadErrorWithClusterBreakingPotential';

/** `kind`: the name of the options in a refusal. */
export function parseWriteOptions(query: URLSearchParams, kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions'): WriteOptions {
  const causes = [...dryRunCauses(query)];
  const fieldValidation = query.get('fieldValidation') || 'Warn';
  if (!fieldValidations.includes(fieldValidation))
    causes.push(notSupported('fieldValidation', fieldValidation, '"Ignore", "Strict", "Warn"'));
  const manager = query.get('fieldManager') ?? '';
  if (Buffer.byteLength(manager) > fieldManagerBytesMax) causes.push(tooLong('fieldManager', fieldManagerBytesMax));
  if (!printable.test(manager)) causes.push(invalidValue('fieldManager', manager, 'should only contain printable characters'));
  if (kind === 'PatchOptions' && query.has('force')) causes.push(forbidden('may not be specified for non-apply patch', 'force'));
  if (causes.length > 0) throw new Refused(invalidOptions(kind, causes));
  return { dryRun: query.has('dryRun'), fieldValidation: fieldValidation as FieldValidation };
}

/** Even if duplicates are accepted, read-object.ts may warn of them. */
export function duplicatesIn({ fieldValidation }: WriteOptions): Duplicates {
  return fieldValidation === 'Strict' ? 'refused' : 'last';
}

/**
 * Finalizers, propagation and grace period have no effect, because a delete takes effect at once.
 * The options are checked all the same.
 */
function parseDeleteOptions(query: URLSearchParams): DeleteOptions {
  const policy = query.get('propagationPolicy');
  const grace = query.get('gracePeriodSeconds');
  if (grace !== null) parseInteger(grace);
  const causes = [...dryRunCauses(query)];
  if (policy !== null && query.has('orphanDependents'))
    causes.push(invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'));
  if (policy !== null && !propagationPolicies.includes(policy))
    causes.push(notSupported('propagationPolicy', policy, '"Foreground", "Background", "Orphan", "nil"'));
  if (isTrue(query.get(unsafeDelete))) causes.push(forbidden('this server does not delete objects that it cannot read', unsafeDelete));
  if (causes.length > 0) throw new Refused(invalidOptions('DeleteOptions', causes));
  return {
    dryRun: query.has('dryRun'),
    uid: query.get('uid') ?? undefined,
    resourceVersion: query.get('resourceVersion') ?? undefined,
  };
}

function dryRunCauses(query: URLSearchParams): readonly Cause[] {
  return query
    .getAll('dryRun')
    .filter((text) => text !== 'All')
    .map((text) => notSupported('dryRun', text, '"All"'));
}

/** The serving thread parses these options, so they must be short. */
const optionsBytesMax = 16 * 1024;

/**
 * The DeleteOptions of a DELETE, from its query and its body; kcp sends the body without a
 * Content-Type. Kubernetes ignores the query if there is a body. This server uses both, and refuses
 * contradictions between them (OPTION-1, OPTION-2).
 */
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
  // If there is a body, the resourceVersion in a collection's query belongs to its list options.
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
/** Any group and version, because DeleteOptions exist in every API group. */
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
    if (options === undefined) throw new Refused(badRequest(`the field ${JSON.stringify(name)} of DeleteOptions has an invalid value`));
    return options;
  });
}
