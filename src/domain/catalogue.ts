/**
 * Which types exist (D7): the built-in ones, which are data, and those that ClusterCachedResource objects in the store
 * declare at run time (P5–P8). Consulted by every request, so every answer is a few map look-ups.
 *
 * C1 A built-in type has no identity, and what a ClusterCachedResource says about its group and resource is ignored.
 * C2 A declared type exists exactly as long as at least one usable ClusterCachedResource names its identity, group and
 *    resource; its served versions are those of all of them.
 * C3 What is served does not depend on the order in which ClusterCachedResources were seen: where they disagree, the
 *    first by name, then by cluster, then by shard speaks.
 *
 * A ClusterCachedResource is usable once kcp has written kind and scope into its annotations and the identity hash into
 * its status; before that kcp's own requests are answered 404 and it tries again. Memory is bounded by their number,
 * hence by the store.
 */
import { formatResource, type Resource } from './resource.js';

/** A printer column, as a CustomResourceDefinition has it. */
export type Column = Readonly<{ name: string; type: string; format?: string; description?: string; priority?: number; jsonPath: string }>;

export type ServedVersion = Readonly<{ name: string; columns: readonly Column[] }>;

/** One type as it is served. `versions` come in order of preference, the preferred one first. */
export type ServedType = Readonly<{
  group: string;
  resource: string;
  /** '' for a built-in type. */
  identity: string;
  kind: string;
  listKind: string;
  singular: string;
  shortNames: readonly string[];
  categories: readonly string[];
  namespaced: boolean;
  /** What a name must be (W2): a DNS-1123 subdomain, or anything that fits between two slashes. */
  nameRule: 'subdomain' | 'path-segment';
  /** Whether strategic merge patches are understood (W12): only for types that client-go has structs of. */
  strategicMerge: boolean;
  versions: readonly ServedVersion[];
  storageVersion: string;
}>;

/** What a URL says about a type. `cluster` is '*' or a logical cluster; `identity` is undefined when the URL has none. */
export type TypeRequest = Readonly<{
  group: string;
  version: string;
  resource: string;
  identity: string | undefined;
  cluster: string;
  /** Whether the answer is to be partial metadata. */
  partial: boolean;
}>;

/** `identity` is the one to look under in the store; '*' stands for all of them. */
export type Resolution = Readonly<{ kind: 'found'; type: ServedType; identity: string }> | Readonly<{ kind: 'unknown' }>;

/** Where a ClusterCachedResource lives. */
export type Place = Readonly<{ shard: string; cluster: string; name: string }>;

/** A type by what a ClusterCachedResource declares it with; the identity is never ''. */
export type Declared = Resource;

/** What one usable ClusterCachedResource says. */
type Declaration = Declared & Readonly<{ place: Place; version: string; kind: string; namespaced: boolean }>;

/** Everything said about one declared type. `type` is worked out when first asked for, and again after each change. */
type DeclaredType = { readonly declarations: Map<string, Declaration>; type: ServedType | undefined };

const unknown: Resolution = { kind: 'unknown' };
const kindAnnotation = 'cache.kcp.io/resource-kind';
const scopeAnnotation = 'cache.kcp.io/resource-scope';

export class Catalogue {
  readonly #builtIn: ReadonlyMap<string, ServedType>;
  readonly #declarations = new Map<string, Declaration>();
  /** group/resource, then identity. */
  readonly #declaredTypes = new Map<string, Map<string, DeclaredType>>();
  /** Logical cluster, then place. */
  readonly #byCluster = new Map<string, Map<string, Declaration>>();

  constructor(builtIn: readonly ServedType[]) {
    this.#builtIn = new Map(builtIn.map((type) => [formatFamily(type.group, type.resource), type]));
  }

  /** The type a request names. The core group may be spelled `core` (P7). */
  resolve(request: TypeRequest): Resolution {
    const family = formatFamily(request.group, request.resource);
    const builtIn = this.#builtIn.get(family);
    const wildcardPartial = request.cluster === '*' && request.partial;
    const type = builtIn ?? this.#resolveDeclared(family, request);
    if (type === undefined) return unknown;

    if (wildcardPartial) return { kind: 'found', type, identity: builtIn === undefined ? '*' : '' };
    return serves(type, request.version) ? { kind: 'found', type, identity: type.identity } : unknown;
  }

  /**
   * Takes note of a ClusterCachedResource that appeared or changed; `body` is its JSON text. Returns what nobody
   * declares any longer because of this change.
   */
  declare(place: Place, body: Uint8Array): readonly Declared[] {
    const declaration = parseDeclaration(place, body);
    const usable = declaration !== undefined && !this.#builtIn.has(formatFamily(declaration.group, declaration.resource));
    const former = this.#declarations.get(formatPlace(place));
    if (former !== undefined) this.#remove(former);
    if (usable) this.#add(declaration);
    return this.#noLongerDeclared(former);
  }

  /** Takes note that a ClusterCachedResource is gone. Returns what nobody declares any longer because of this. */
  withdraw(place: Place): readonly Declared[] {
    const former = this.#declarations.get(formatPlace(place));
    if (former !== undefined) this.#remove(former);
    return this.#noLongerDeclared(former);
  }

  /** Every declared type, one per identity. */
  declared(): readonly ServedType[] {
    const all = [...this.#declaredTypes.values()].flatMap((identities) => [...identities.values()]);
    return all.map((declared) => typeOf(declared)).sort(compareTypes);
  }

  /** What discovery shows below a logical cluster, or below '*'; of same-named resources only the first. */
  forCluster(cluster: string): readonly ServedType[] {
    const declared = cluster === '*' ? this.declared() : this.#declaredIn(cluster);
    const byFamily = new Map<string, ServedType>();
    for (const type of declared) {
      const family = formatFamily(type.group, type.resource);
      if (!byFamily.has(family)) byFamily.set(family, type);
    }
    return [...this.#builtIn.values(), ...byFamily.values()];
  }

  /**
   * Below '*' an identity must be named, unless only metadata is wanted: that shows all identities, so any will do.
   * Below a logical cluster it is that cluster's ClusterCachedResource that makes the type exist.
   */
  #resolveDeclared(family: string, { cluster, identity, partial }: TypeRequest): ServedType | undefined {
    const identities = this.#declaredTypes.get(family);
    if (identities === undefined) return undefined;

    if (cluster !== '*') {
      const declaration = this.#firstIn(cluster, family, identity);
      return declaration && typeOf(identities.get(declaration.identity));
    }
    if (identity !== undefined) return typeOf(identities.get(identity));
    if (!partial) return undefined;
    const [any] = identities.values();
    return typeOf(any);
  }

  #firstIn(cluster: string, family: string, identity: string | undefined): Declaration | undefined {
    let first: Declaration | undefined;
    for (const declaration of this.#byCluster.get(cluster)?.values() ?? []) {
      if (formatFamily(declaration.group, declaration.resource) !== family) continue;
      if (identity !== undefined && declaration.identity !== identity) continue;
      if (first === undefined || comparePlaces(declaration, first) < 0) first = declaration;
    }
    return first;
  }

  #declaredIn(cluster: string): readonly ServedType[] {
    const declarations = [...(this.#byCluster.get(cluster)?.values() ?? [])].sort(comparePlaces);
    return declarations.map((declaration) => typeOf(this.#find(declaration))).filter((type) => type !== undefined);
  }

  #find({ group, resource, identity }: Declared): DeclaredType | undefined {
    return this.#declaredTypes.get(formatFamily(group, resource))?.get(identity);
  }

  #noLongerDeclared(former: Declaration | undefined): readonly Declared[] {
    if (former === undefined || this.#find(former) !== undefined) return [];
    return [{ group: former.group, resource: former.resource, identity: former.identity }];
  }

  #add(declaration: Declaration): void {
    const place = formatPlace(declaration.place);
    const identities = entryOf(this.#declaredTypes, formatFamily(declaration.group, declaration.resource), () => new Map<string, DeclaredType>());
    const declared = entryOf(identities, declaration.identity, (): DeclaredType => ({ declarations: new Map(), type: undefined }));
    declared.declarations.set(place, declaration);
    declared.type = undefined;
    entryOf(this.#byCluster, declaration.place.cluster, () => new Map<string, Declaration>()).set(place, declaration);
    this.#declarations.set(place, declaration);
  }

  #remove(declaration: Declaration): void {
    const place = formatPlace(declaration.place);
    this.#declarations.delete(place);
    removeFrom(this.#byCluster, declaration.place.cluster, place);

    const family = formatFamily(declaration.group, declaration.resource);
    const declared = this.#find(declaration);
    if (declared === undefined) return;
    declared.declarations.delete(place);
    declared.type = undefined;
    if (declared.declarations.size === 0) removeFrom(this.#declaredTypes, family, declaration.identity);
  }
}

export function serves(type: ServedType, version: string): boolean {
  return type.versions.some(({ name }) => name === version);
}

/**
 * Orders API versions by Kubernetes' preference, the preferred one first: v10, v2, v1, v1beta2, v1beta1, v1alpha1, and
 * then whatever is not spelled like that, by its text.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
 */
export function compareVersions(left: string, right: string): number {
  const leftRank = rankVersion(left);
  const rightRank = rankVersion(right);
  if (leftRank === undefined || rightRank === undefined) {
    if (leftRank === rightRank) return compareTexts(left, right);
    return leftRank === undefined ? 1 : -1;
  }
  return rightRank.stability - leftRank.stability || rightRank.major - leftRank.major || rightRank.minor - leftRank.minor;
}

const stabilities = ['alpha', 'beta'];

function rankVersion(version: string): { stability: number; major: number; minor: number } | undefined {
  const [, major, stability, minor] = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/.exec(version) ?? [];
  if (major === undefined) return undefined;
  if (stability === undefined) return { stability: stabilities.length, major: Number(major), minor: 0 };
  return { stability: stabilities.indexOf(stability), major: Number(major), minor: Number(minor) };
}

/** The text for a group and resource, unambiguous because what it is looked up in holds names without '/' only. */
function formatFamily(group: string, resource: string): string {
  return group === 'core' ? `/${resource}` : `${group}/${resource}`;
}

function formatPlace({ shard, cluster, name }: Place): string {
  return JSON.stringify([shard, cluster, name]);
}

/** What a declared type looks like, from all that is said about it (P8). */
function typeOf(declared: DeclaredType): ServedType;
function typeOf(declared: DeclaredType | undefined): ServedType | undefined;
function typeOf(declared: DeclaredType | undefined): ServedType | undefined {
  if (declared === undefined) return undefined;
  declared.type ??= synthesize([...declared.declarations.values()].sort(comparePlaces));
  return declared.type;
}

function synthesize(declarations: readonly Declaration[]): ServedType {
  const [first] = declarations;
  if (first === undefined) throw new Error('a declared type without declarations');
  const versions = [...new Set(declarations.map(({ version }) => version))].sort(compareVersions);
  return {
    group: first.group,
    resource: first.resource,
    identity: first.identity,
    kind: first.kind,
    listKind: `${first.kind}List`,
    singular: first.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: first.namespaced,
    nameRule: 'subdomain',
    strategicMerge: false,
    versions: versions.map((name) => ({ name, columns: [] })),
    storageVersion: versions[0] ?? first.version,
  };
}

/**
 * Reads a ClusterCachedResource; undefined when it does not, or not yet, declare a type. The names end up in URLs and
 * keys, so what is no name there declares nothing; an identity of '*' would open every other one.
 */
function parseDeclaration(place: Place, body: Uint8Array): Declaration | undefined {
  const object: unknown = JSON.parse(new TextDecoder().decode(body));
  const group = textAt(object, 'spec', 'group') ?? '';
  const resource = textAt(object, 'spec', 'resource') ?? '';
  const version = textAt(object, 'spec', 'version') ?? '';
  const identity = textAt(object, 'status', 'identityHash') ?? '';
  const kind = textAt(object, 'metadata', 'annotations', kindAnnotation) ?? '';
  const scope = textAt(object, 'metadata', 'annotations', scopeAnnotation);
  if (scope !== 'Namespaced' && scope !== 'Cluster') return undefined;
  if (!/^(?:[a-z0-9][a-z0-9.-]*)?$/.test(group) || !/^[A-Za-z][A-Za-z0-9-]*$/.test(kind)) return undefined;
  if (![resource, version, identity].every((name) => /^[A-Za-z0-9][A-Za-z0-9-]*$/.test(name))) return undefined;
  return { place, group: group === 'core' ? '' : group, resource, version, identity, kind, namespaced: scope === 'Namespaced' };
}

function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === 'string' ? found : undefined;
}

function entryOf<Value>(map: Map<string, Value>, name: string, create: () => Value): Value {
  const existing = map.get(name);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(name, created);
  return created;
}

function removeFrom(outer: Map<string, Map<string, unknown>>, outerName: string, innerName: string): void {
  const inner = outer.get(outerName);
  if (inner === undefined) return;
  inner.delete(innerName);
  if (inner.size === 0) outer.delete(outerName);
}

function compareTypes(left: ServedType, right: ServedType): number {
  return compareTexts(formatResource(left), formatResource(right));
}

function comparePlaces({ place: left }: Declaration, { place: right }: Declaration): number {
  return compareTexts(left.name, right.name) || compareTexts(left.cluster, right.cluster) || compareTexts(left.shard, right.shard);
}

/** By code unit: the same on every machine, whatever its locale. */
function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
