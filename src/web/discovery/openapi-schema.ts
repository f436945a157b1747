/** The schemas in an OpenAPI document, for `kubectl explain`. */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import type { Described } from './discovery.js';

/**
 * The known part of a kind's schema. `fields` may replace the general descriptions of apiVersion,
 * kind and metadata.
 */
export type KindSchema = Readonly<{
  description?: string;
  required?: readonly string[];
  fields: Readonly<Record<string, object>>;
}>;

/** A type that has a document. `schema`: set only for kinds that the cache itself defines. */
export type Documented = Described & Partial<Pick<ServedType, 'identity'>> & Readonly<{ schema?: KindSchema }>;

/** Schemas that shards have published, as JSON, by their names in documents. */
export type SchemaTexts = ReadonlyMap<string, string>;

/**
 * The schema of a kind as JSON text: the published one, or else the fields that every object of the
 * kind may have.
 */
export function schemaText(type: Documented, version: string, published: SchemaTexts): string {
  return publishedText(type, version, published) ?? formatSchema(type, version, type.schema ?? { fields: fieldsOf(type) });
}

/** Undefined for a declared type, because it may have the name of a built-in one. */
export function publishedText(type: Documented, version: string, published: SchemaTexts): string | undefined {
  return type.identity === '' ? published.get(schemaName(type, version)) : undefined;
}

/** Preserves unknown fields, because kubectl would reject a field that the schema leaves out. */
export function formatSchema(type: Documented, version: string, { description, required, fields }: KindSchema): string {
  return JSON.stringify({
    type: 'object',
    description: description ?? `${type.kind} of a shard, as the cache holds it. The cache checks only its metadata.`,
    required,
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: metadataSchema, ...fields },
    'x-kubernetes-group-version-kind': [groupVersionKind(type, version)],
    'x-kubernetes-preserve-unknown-fields': true,
  });
}

/** `io.kcp.apis.v1alpha2.APIExport` */
export function schemaName({ group, kind }: Documented, version: string): string {
  return [...group.split('.').reverse(), version, kind].filter((part) => part !== '').join('.');
}

export function groupVersionKind({ group, kind }: Documented, version: string): object {
  return { group, version, kind };
}

const anyObject = {
  type: 'object',
  description: 'As the shard has it: the definition of the type on the shard names the fields.',
  'x-kubernetes-preserve-unknown-fields': true,
};
const anyObjects = { type: 'array', items: anyObject, description: anyObject.description };
const texts = { type: 'object', additionalProperties: { type: 'string' } };
const metadataSchema = {
  type: 'object',
  description: 'What every object has. Annotations kcp.io/… give its canonical path, logical cluster and shard.',
  properties: {
    name: { type: 'string' },
    namespace: { type: 'string' },
    labels: texts,
    annotations: texts,
    uid: { type: 'string' },
    resourceVersion: { type: 'string', description: 'A revision of this cache, which is not that of the shard.' },
    generation: { type: 'integer', format: 'int64' },
    creationTimestamp: { type: 'string', format: 'date-time' },
    deletionTimestamp: { type: 'string', format: 'date-time' },
    finalizers: { type: 'array', items: { type: 'string' } },
    ownerReferences: anyObjects,
    managedFields: anyObjects,
  },
};

/** The fields of a kind besides metadata. Kinds that are not in this table have spec and status. */
const otherFields: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  Role: { rules: anyObjects },
  ClusterRole: { rules: anyObjects, aggregationRule: anyObject },
  RoleBinding: { subjects: anyObjects, roleRef: anyObject },
  ClusterRoleBinding: { subjects: anyObjects, roleRef: anyObject },
  MutatingWebhookConfiguration: { webhooks: anyObjects },
  ValidatingWebhookConfiguration: { webhooks: anyObjects },
  MutatingAdmissionPolicy: { spec: anyObject },
  MutatingAdmissionPolicyBinding: { spec: anyObject },
  ValidatingAdmissionPolicyBinding: { spec: anyObject },
  APIConversion: { spec: anyObject },
  APIResourceSchema: { spec: anyObject },
};

/** A shard alone defines its declared types, so the cache knows none of their fields. */
function fieldsOf({ kind, identity }: Documented): Readonly<Record<string, object>> {
  return identity === '' ? (otherFields[kind] ?? { spec: anyObject, status: anyObject }) : {};
}
