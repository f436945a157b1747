/**
 * What an APIExport and an APIResourceSchema say about the fields of a type. Pure.
 *
 * Nobody has validated these objects. Only the keywords below are copied from a schema, and only
 * with values of OpenAPI's types. kubectl reads a document as a whole, so one keyword of a wrong
 * type would make `kubectl apply` fail for every type of the group.
 *
 * Bounds: a body beyond `bodyBytesMax` or `valuesMax` is not read, because it would be parsed in
 * one turn of the event loop. Below `depthMax` levels a field is named but not described.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { isObject, itemsOf, membersOf, textAt, type Members } from '../../domain/base/members.js';
import type { Resource } from '../../domain/resource.js';
import { jsonValue } from '../../json/json-value.js';
import { boundedText } from '../../json/value-count.js';
import type { KindSchema } from './openapi-schema.js';

/** The schemas of kcp's types have 16 kB and 400 values. */
const bodyBytesMax = 256 * 1024;
const valuesMax = 10_000;
/** The schemas of kcp's types have 8 levels. */
const depthMax = 64;
const nameCharactersMax = 253;
/**
 * Control characters other than line breaks and tabs could move a terminal's cursor or do worse.
 */
const control = /(?![\n\t])\p{Cc}/u;
/**
 * An escaped half of a UTF-16 surrogate pair. Go refuses a document with an unpaired half. kcp
 * never escapes surrogates, so a body with any such escape is not read.
 */
const escapedSurrogate = /\\u[dD][89a-fA-F]/;

export const exportType: Resource = { group: 'apis.kcp.io', resource: 'apiexports', identity: '' };

export type NamedSchema = Readonly<{ group: string; resource: string; name: string }>;

/** Reads both versions of APIExport, whichever is stored. */
export function schemasNamedBy(apiExport: Uint8Array): readonly NamedSchema[] {
  return namedIn(specOf(readMembers(apiExport)));
}

/**
 * `identity`: the export's; '' until kcp has made one. A resource has the export's identity, or the
 * identity of the resource that is cached for it (`storage.virtual`).
 */
export type Exported = Readonly<{ identity: string; resources: readonly Resource[] }>;

export function exportedResources(apiExport: Uint8Array): Exported {
  const members = readMembers(apiExport);
  const spec = specOf(members);
  const identity = textAt(members, 'status', 'identityHash') ?? '';
  const virtual = new Map(
    itemsOf(spec['resources']).map((item) => [textAt(item, 'schema') ?? '', textAt(item, 'storage', 'virtual', 'identityHash')]),
  );
  const resources = namedIn(spec).map(({ group, resource, name }) => ({ group, resource, identity: virtual.get(name) ?? identity }));
  return { identity, resources };
}

/**
 * The schemas of an APIResourceSchema, by version, for the served versions of the type. Empty if
 * the APIResourceSchema describes another type.
 */
export function parseResourceSchema(body: Uint8Array, type: ServedType): ReadonlyMap<string, KindSchema> {
  const spec = specOf(readMembers(body));
  const isOfType =
    spec['group'] === type.group && textAt(spec, 'names', 'plural') === type.resource && textAt(spec, 'names', 'kind') === type.kind;
  if (!isOfType) return new Map();
  const found = new Map<string, KindSchema>();
  for (const version of itemsOf(spec['versions']).map(membersOf)) {
    const name = type.versions.find((served) => served.name === version['name'])?.name;
    const schema = name === undefined ? undefined : kindSchemaOf(version['schema']);
    if (name !== undefined && schema !== undefined) found.set(name, schema);
  }
  return found;
}

/** Undefined if the schema has no properties. */
function kindSchemaOf(value: unknown): KindSchema | undefined {
  const { description, required, properties } = schemaOf(value);
  if (properties === undefined) return undefined;
  // The cache's own descriptions of these members are more exact.
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = properties;
  return { ...(description !== undefined && { description }), ...(required !== undefined && { required }), fields };
}

const texts = ['type', 'format', 'description'];
const flags = ['x-kubernetes-int-or-string', 'x-kubernetes-preserve-unknown-fields'];

type Schema = Readonly<{
  description?: string;
  required?: readonly string[];
  properties?: Readonly<Record<string, object>>;
  [word: string]: unknown;
}>;

/**
 * A schema that accepts anything. It is not empty, because kubectl explain fails on an empty
 * schema.
 */
const anything: Schema = { 'x-kubernetes-preserve-unknown-fields': true };

function schemaOf(value: unknown, depth = 0): Schema {
  if (!isObject(value) || depth > depthMax) return anything;
  const { required, enum: values, properties, items, additionalProperties: others } = value;
  const schema: Record<string, unknown> = {};
  for (const word of texts) if (isPlainText(value[word])) schema[word] = value[word];
  for (const word of flags) if (typeof value[word] === 'boolean') schema[word] = value[word];
  if (Array.isArray(required) && required.every(isPlainText)) schema['required'] = required;
  if (Array.isArray(values) && values.every((each) => typeof each !== 'object' && (typeof each !== 'string' || isPlainText(each))))
    schema['enum'] = values;
  if (isObject(properties)) schema['properties'] = schemasOf(properties, depth + 1);
  if (isObject(items)) schema['items'] = schemaOf(items, depth + 1);
  if (isObject(others)) schema['additionalProperties'] = schemaOf(others, depth + 1);
  if (typeof others === 'boolean') schema['additionalProperties'] = others;
  return Object.keys(schema).length === 0 ? anything : schema;
}

/** Unlike an assignment, this makes `__proto__` an ordinary member. */
function schemasOf(properties: Members, depth: number): Readonly<Record<string, Schema>> {
  const named = Object.entries(properties).filter(([name]) => isPlainText(name));
  return Object.fromEntries(named.map(([name, property]) => [name, schemaOf(property, depth)]));
}

function isPlainText(value: unknown): value is string {
  return typeof value === 'string' && !control.test(value);
}

/** v1alpha2: `{group, name, schema}` */
function namedInResources(item: unknown): NamedSchema | undefined {
  const [group, resource, name] = [textAt(item, 'group'), textAt(item, 'name'), textAt(item, 'schema')];
  return group === undefined || resource === undefined || name === undefined ? undefined : { group, resource, name };
}

/** v1alpha1: `PREFIX.RESOURCE.GROUP` */
function namedByName(name: unknown): NamedSchema | undefined {
  if (typeof name !== 'string' || name.length > nameCharactersMax) return undefined;
  const [, resource = '', ...group] = name.split('.');
  return { group: group.join('.'), resource, name };
}

function namedIn(spec: Members): readonly NamedSchema[] {
  return [...itemsOf(spec['resources']).map(namedInResources), ...itemsOf(spec['latestResourceSchemas']).map(namedByName)].filter(
    (named) => named !== undefined,
  );
}

/** No members if the body is not read. */
function readMembers(body: Uint8Array): Members {
  const text = boundedText(body, { bytesMax: bodyBytesMax, valuesMax });
  return text === undefined || escapedSurrogate.test(text) ? {} : membersOf(jsonValue(text));
}

function specOf(members: Members): Members {
  return membersOf(members['spec']);
}
