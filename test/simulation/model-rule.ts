/**
 * A rule of a link policy as an operator writes it, and a matcher that is independent of the code
 * under test: one line for each condition.
 */
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { Key } from '../../src/domain/key.js';
import type { Body } from '../../src/domain/object.js';
import { formatGroupResource, formatResource } from '../../src/domain/resource.js';

type Texts = Readonly<Record<string, string>>;

/** A rule matches if all conditions that it names match. */
export type ModelRule = Readonly<{
  types?: readonly string[];
  shards?: readonly string[];
  clusters?: readonly string[];
  pathPrefix?: string;
  labels?: Texts;
  annotations?: Texts;
}>;

export type ModelObject = Readonly<{ key: Key; body: Body }>;

type Declaring = Readonly<{ spec: Readonly<{ group: string; resource: string }>; status: Readonly<{ identityHash: string }> }>;

type Metadata = Readonly<{ labels: Texts; annotations: Texts }>;

const builtIn = new Set(kcpTypes.map(formatGroupResource));
const known = new WeakMap<Body, Metadata>();
const knownDeclarations = new WeakMap<Body, string>();
export const pathAnnotation = 'kcp.io/path';

/** Unique within one shard. */
export function textOfKey({ resource, cluster, namespace, name }: Key): string {
  return `${formatResource(resource)}|${cluster}|${namespace}/${name}`;
}

/**
 * Whether a rule matches the object, or names a type that the object declares, because readers need
 * the declaration. `paths`: the path of a logical cluster, for objects that do not name it
 * themselves.
 */
export function matchesRule(rule: ModelRule, object: ModelObject, paths: ReadonlyMap<string, string>): boolean {
  const [declared] = declaredBy([object]);
  const isDeclaring =
    declared !== undefined && rule.types?.some((type) => !builtIn.has(type) && (type === declared || isOf(declared, type)));
  return isDeclaring === true ? (rule.shards?.includes(object.key.shard) ?? true) : matches(rule, object, paths);
}

function matches(rule: ModelRule, { key, body }: ModelObject, paths: ReadonlyMap<string, string>): boolean {
  const { labels, annotations } = metadataOf(body);
  const path = annotations[pathAnnotation] ?? paths.get(key.cluster) ?? '';
  const types = ['*', formatGroupResource(key.resource), formatResource(key.resource)];
  return (
    (rule.types?.some((type) => types.includes(type)) ?? true) &&
    (rule.shards?.includes(key.shard) ?? true) &&
    (rule.clusters?.includes(key.cluster) ?? true) &&
    (rule.pathPrefix === undefined || `${path}:`.startsWith(`${rule.pathPrefix}:`)) &&
    Object.entries(rule.labels ?? {}).every(([name, value]) => labels[name] === value) &&
    Object.entries(rule.annotations ?? {}).every(([name, value]) => (value === '*' ? name in annotations : annotations[name] === value))
  );
}

/** The path of each logical cluster, from the objects that name it. */
export function pathsIn(objects: readonly ModelObject[]): ReadonlyMap<string, string> {
  const received = objects.map(({ key, body }): [string, string | undefined] => [
    key.cluster,
    metadataOf(body).annotations[pathAnnotation],
  ]);
  return new Map(received.flatMap(([cluster, path]) => (path === undefined ? [] : [[cluster, path]])));
}

/** Whether `one` is the type `other` with an identity. */
function isOf(one: string, other: string): boolean {
  return one.startsWith(`${other}:`);
}

/** The types, as text, that the ClusterCachedResources among the objects declare. */
export function declaredBy(objects: readonly ModelObject[]): ReadonlySet<string> {
  const declaring = objects.filter(({ key: { resource } }) => resource.resource === 'clustercachedresources');
  return new Set(declaring.map(({ body }) => knownDeclarations.get(body) ?? readDeclaration(body)));
}

function readDeclaration(body: Body): string {
  const { spec, status } = JSON.parse(new TextDecoder().decode(body.bytes)) as Declaring;
  const declared = formatResource({ group: spec.group, resource: spec.resource, identity: status.identityHash });
  knownDeclarations.set(body, declared);
  return declared;
}

/** Cached, because many caches hold the same bodies. */
export function metadataOf(body: Body): Metadata {
  const before = known.get(body);
  if (before !== undefined) return before;
  const { metadata } = JSON.parse(new TextDecoder().decode(body.bytes)) as { metadata: Partial<Metadata> };
  const { labels = {}, annotations = {} } = metadata;
  known.set(body, { labels, annotations });
  return { labels, annotations };
}
