/**
 * As much OpenAPI v3 as kubectl needs to apply, create and explain: pure functions from types to documents.
 *
 * kubectl needs one thing of a document: whether the PATCH operation of the kind has the parameter `fieldValidation`.
 * If so it leaves validation to the server. The schemas name the fields that every object of a kind may have, for `kubectl explain`, and no more:
 * a cache validates none, and what a field holds is the business of the shard that has its definition.
 * `application/strategic-merge-patch+json` is in no document on purpose: kubectl would then compute such patches from
 * the schemas; without it, it decides by the types it was built with, which is right for every type here.
 *
 * /openapi/v2 is not served (404). kubectl needs it, as protobuf, only when v3 fails or lacks the kind; apply asks for it
 * once more before it patches, and a 404 sends it on to those built-in types.
 *
 * A document is addressed by its hash, so that a client may keep it for ever; the hash is the ETag as well.
 */
import { createHash } from 'node:crypto';
import type { ServedType } from '../domain/catalogue.js';
import { groupsOf, servedAt, versionsOf, type Answer } from './discovery.js';

/** An answer a client may keep; `etag` comes with its quotes. */
export type TaggedAnswer = Answer & Readonly<{ etag: string }>;

const documentPrefix = '/openapi/v3';

/** /openapi/v3: which documents there are. Clients put the prefix of the cache in front of the root-relative URLs. */
export function openApiIndex(types: readonly ServedType[]): TaggedAnswer {
  const paths: [string, object][] = [];
  for (const group of groupsOf(types)) {
    for (const version of versionsOf(types, group)) {
      const path = formatPath(group, version);
      const { hash } = documentOf(types, group, version);
      paths.push([path, { serverRelativeURL: `${documentPrefix}/${path}?hash=${hash}` }]);
    }
  }
  return tagged(JSON.stringify({ paths: Object.fromEntries(paths) }));
}

/** /openapi/v3/apis/GROUP/VERSION, and /openapi/v3/api/v1 with the group ''; undefined when nothing is served there. */
export function openApiDocument(types: readonly ServedType[], group: string, version: string): TaggedAnswer | undefined {
  if (servedAt(types, group, version).length === 0) return undefined;
  return tagged(documentOf(types, group, version).body);
}

function documentOf(types: readonly ServedType[], group: string, version: string): { body: string; hash: string } {
  const served = servedAt(types, group, version);
  const body = JSON.stringify({
    openapi: '3.0.0',
    info: { title: 'Strata', version },
    paths: Object.fromEntries(served.flatMap((type) => pathsOf(type, version))),
    components: { schemas: Object.fromEntries(served.map((type) => [schemaName(type, version), schemaOf(type, version)])) },
  });
  return { body, hash: hashOf(body) };
}

function tagged(body: string): TaggedAnswer {
  return { contentType: 'application/json', body, etag: `"${hashOf(body)}"` };
}

function hashOf(body: string): string {
  return createHash('sha256').update(body).digest('hex').toUpperCase();
}

/** The two paths of a type: its collection and one object. */
function pathsOf(type: ServedType, version: string): [string, object][] {
  const namespace = type.namespaced ? '/namespaces/{namespace}' : '';
  const collection = `/${formatPath(type.group, version)}${namespace}/${type.resource}`;
  const operations = operationsOf(type, version);
  const inPath = type.namespaced ? [pathParameter('namespace')] : [];
  return [
    [collection, { get: operations.list, post: operations.create, delete: operations.deleteCollection, parameters: inPath }],
    [
      `${collection}/{name}`,
      {
        get: operations.get,
        put: operations.update,
        patch: operations.patch,
        delete: operations.delete,
        parameters: [...inPath, pathParameter('name')],
      },
    ],
  ];
}

function operationsOf(type: ServedType, version: string) {
  const object = { $ref: `#/components/schemas/${schemaName(type, version)}` };
  const anyObject = { type: 'object' };
  const read = ['resourceVersion'];
  const list = [
    'labelSelector',
    'fieldSelector',
    'limit',
    'continue',
    'resourceVersion',
    'resourceVersionMatch',
    'watch',
    'allowWatchBookmarks',
    'sendInitialEvents',
    'timeoutSeconds',
  ];
  const write = ['dryRun', 'fieldManager', 'fieldValidation'];

  const operation = (action: string, query: readonly string[], answer: object, body?: object) => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': groupVersionKind(type, version),
    parameters: query.map((name) => ({ name, in: 'query', schema: { type: 'string' } })),
    ...(body !== undefined && { requestBody: { content: body } }),
    responses: { 200: { description: 'OK', content: { 'application/json': { schema: answer } } } },
  });

  return {
    list: operation('list', list, anyObject),
    create: operation('post', write, object, { 'application/json': { schema: object } }),
    deleteCollection: operation('deletecollection', list, anyObject, { 'application/json': { schema: anyObject } }),
    get: operation('get', read, object),
    update: operation('put', write, object, { 'application/json': { schema: object } }),
    patch: operation('patch', write, object, {
      'application/json-patch+json': { schema: { type: 'array', items: anyObject } },
      'application/merge-patch+json': { schema: anyObject },
    }),
    delete: operation('delete', ['dryRun'], anyObject, { 'application/json': { schema: anyObject } }),
  };
}

function pathParameter(name: string): object {
  return { name, in: 'path', required: true, schema: { type: 'string' } };
}

function schemaOf(type: ServedType, version: string): object {
  return {
    type: 'object',
    description: `${type.kind} of a shard, as the cache holds it. It checks no field but metadata's.`,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: metadataSchema,
      ...fieldsOf(type),
    },
    'x-kubernetes-group-version-kind': [groupVersionKind(type, version)],
    'x-kubernetes-preserve-unknown-fields': true,
  };
}

/** Whatever a shard has there. */
const anyObject = {
  type: 'object',
  description: 'As the shard has it: the fields are those of its definition there.',
  'x-kubernetes-preserve-unknown-fields': true,
};
const anyObjects = { type: 'array', items: anyObject, description: anyObject.description };
const texts = { type: 'object', additionalProperties: { type: 'string' } };
const metadataSchema = {
  type: 'object',
  description: 'What every object has; canonical path, logical cluster and shard stand in annotations kcp.io/….',
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

/** What a kind has beside metadata: spec and status, but for these of Kubernetes and kcp. */
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

/** A declared type is whatever its shard says: nothing is known of its fields. */
function fieldsOf({ kind, identity }: ServedType): Readonly<Record<string, object>> {
  return identity === '' ? (otherFields[kind] ?? { spec: anyObject, status: anyObject }) : {};
}

function groupVersionKind({ group, kind }: ServedType, version: string): object {
  return { group, version, kind };
}

/** `io.kcp.apis.v1alpha2.APIExport` */
function schemaName({ group, kind }: ServedType, version: string): string {
  return [...group.split('.').reverse(), version, kind].filter((part) => part !== '').join('.');
}

function formatPath(group: string, version: string): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}
