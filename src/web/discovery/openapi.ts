/**
 * As much OpenAPI v3 as kubectl needs to apply, create and explain. Pure functions from types to
 * documents.
 *
 * kubectl reads one thing in a document: whether the PATCH operation of the kind has the parameter
 * `fieldValidation`. If so, kubectl leaves validation to the server. The schemas are for `kubectl
 * explain` alone: the published ones (root-schemas.ts), or else the fields that every object of a
 * kind may have. A cache validates none of these fields.
 *
 * No document has `application/strategic-merge-patch+json`, because kubectl would then compute such
 * patches from the schemas. Without it, kubectl uses its built-in types, which are right for every
 * type here.
 *
 * A List and a review have no PATCH. kubectl validates them itself, by the definitions of OpenAPI
 * v2. This server's v2 document has no definitions, and kubectl skips an object whose kind is not
 * defined. Before it patches, `apply` looks for schemas in the v2 document too, and then falls back
 * to its built-in types.
 *
 * A document's URL contains a hash of the document's inputs, so a client may keep the document for
 * ever. The hash is also the ETag, so the server builds the index without building a document.
 */
import { createHash } from 'node:crypto';
import { firstServed } from '../formats/accept.js';
import { byGroup, servedAt, type Answer } from './discovery.js';
import { groupVersionKind, publishedText, schemaName, schemaText, type Documented, type SchemaTexts } from './openapi-schema.js';

/** An answer that a client may keep; `etag` includes its quotes. */
export type TaggedAnswer = Answer & Readonly<{ etag: string }>;

/**
 * The inputs of a document besides the types. `release`: of this software, because releases may
 * describe the same types differently.
 */
export type Sources = Readonly<{ published: SchemaTexts; release: string }>;

type GroupVersion = Readonly<{ group: string; version: string }>;

const documentPrefix = '/openapi/v3';
/** kube-apiserver's name for the type in its answers; clients request it with an '@'. */
const protobufV2 = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** /openapi/v3: the index of documents. Clients put the cache's prefix in front of these URLs. */
export function openApiIndex(types: readonly Documented[], sources: Sources): TaggedAnswer {
  const paths: [string, object][] = [];
  for (const [group, versions] of byGroup(types)) {
    for (const [version, served] of versions) {
      const path = formatPath(group, version);
      paths.push([path, { serverRelativeURL: `${documentPrefix}/${path}?hash=${hashOf(served, sources, version)}` }]);
    }
  }
  return taggedByBody(JSON.stringify({ paths: Object.fromEntries(paths) }));
}

/**
 * /openapi/v3/apis/GROUP/VERSION; with the group '', /openapi/v3/api/v1. Undefined if nothing is
 * served there.
 */
export function openApiDocument(
  types: readonly Documented[],
  sources: Sources,
  { group, version }: GroupVersion,
): TaggedAnswer | undefined {
  const served = servedAt(types, group, version);
  return served.length === 0 ? undefined : tagged(documentOf(served, sources, version), hashOf(served, sources, version));
}

/** /openapi/v2, an empty document in JSON or protobuf. Undefined if `accept` has neither. */
export function openApiV2(accept: string | undefined, release: string): TaggedAnswer | undefined {
  const info = { title: 'Strata', version: release };
  return firstServed(accept, ({ type }) => {
    if (type === 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' || type === protobufV2) {
      // Document.swagger, .info (title, version) and .paths of gnostic's OpenAPIv2.proto.
      const body = bytesField(1, '2.0') + bytesField(2, bytesField(1, info.title) + bytesField(2, info.version)) + bytesField(8, '');
      return { ...taggedByBody(body), contentType: protobufV2 };
    }
    if (!['application/json', 'application/*', '*/*'].includes(type)) return undefined;
    return taggedByBody(JSON.stringify({ swagger: '2.0', info, paths: {} }));
  });
}

/**
 * A length-delimited protobuf field with an ASCII text of less than 128 bytes, so that the length
 * is one byte.
 */
function bytesField(number: number, text: string): string {
  return String.fromCharCode(number * 8 + 2, text.length) + text;
}

function documentOf(served: readonly Documented[], { published }: Sources, version: string): string {
  const paths = Object.fromEntries(served.flatMap((type) => pathsOf(type, version)));
  const rest = JSON.stringify({ openapi: '3.0.0', info: { title: 'Strata', version }, paths });
  const texts = new Map(served.map((type) => [schemaName(type, version), schemaText(type, version, published)]));
  const schemas = [...texts].map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `${rest.slice(0, -1)},"components":{"schemas":{${schemas.join(',')}}}}`;
}

function tagged(body: string, hash: string): TaggedAnswer {
  return { contentType: 'application/json', body, etag: `"${hash}"` };
}

function taggedByBody(body: string): TaggedAnswer {
  return tagged(body, createHash('sha256').update(body).digest('hex').toUpperCase());
}

/** Covers everything that `documentOf` reads. */
function hashOf(served: readonly Documented[], { release, published }: Sources, version: string): string {
  const hash = createHash('sha256').update(`${release} ${version}`);
  for (const type of served) {
    const { group, resource, kind, namespaced, identity, verbs } = type;
    hash.update(JSON.stringify([group, resource, kind, namespaced, identity === '', verbs, publishedText(type, version, published)]));
  }
  return hash.digest('hex').toUpperCase();
}

/**
 * The two paths of a type: its collection and one object. A type that can only be created has one.
 */
function pathsOf(type: Documented, version: string): [string, object][] {
  const namespace = type.namespaced ? '/namespaces/{namespace}' : '';
  const collection = `/${formatPath(type.group, version)}${namespace}/${type.resource}`;
  const operations = operationsOf(type, version);
  if (!isStored(type)) return [[collection, { post: operations.create }]];
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

function operationsOf(type: Documented, version: string) {
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
  const write = isStored(type) ? ['dryRun', 'fieldManager', 'fieldValidation'] : [];

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

/** A review is answered and never stored. */
function isStored({ verbs }: Documented): boolean {
  return verbs?.includes('get') ?? true;
}

function pathParameter(name: string): object {
  return { name, in: 'path', required: true, schema: { type: 'string' } };
}

function formatPath(group: string, version: string): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}
