/**
 * The types that exist: those of the table, which are data, and those that ClusterCachedResource
 * objects in the store declare at run time. Every request consults the catalogue, so each answer
 * takes only a few map look-ups.
 *
 * C1 A built-in type has no identity; a ClusterCachedResource for its group and resource is
 *    ignored. Some built-in types are pushed and never served.
 * C2 A declared type exists exactly as long as at least one usable ClusterCachedResource names its
 *    identity, group and resource. Its served versions are those of all these
 *    ClusterCachedResources.
 * C3 The served types do not depend on the order in which ClusterCachedResources arrived. Where
 *    they disagree, the first one in the order of name, cluster and shard decides.
 * C4 For the objects that a shard pushes, that shard's own declarations count; C3 applies only if
 *    the shard declares nothing of the type. An identity is the hash of a secret, but the hash
 *    itself is public. A shard that copies another shard's identity can change how the type is
 *    read, never what the other shard may push.
 *
 * A ClusterCachedResource is usable once kcp has written kind and scope into its annotations and
 * the identity hash into its status. Until then kcp's own requests get 404, and kcp tries again.
 * `declaration-quotas.ts` bounds how many ClusterCachedResources of each shard declare types; the
 * others wait.
 */
import {
  compareDeclarations,
  coreAlias,
  formatDeclarationKey,
  parseDeclaration,
  type Declaration,
  type Declared,
  type DeclarationKey,
} from './declaration.js';
import { DeclarationQuotas } from './declaration-quotas.js';
import { CacheError } from '../errors.js';
import { entryOf } from '../base/entry-of.js';
import { RecentChanges } from '../recent-changes.js';
import { formatGroupResource, formatResource, type Resource } from '../resource.js';
import type { Revision } from '../revision.js';
import type { ShardName } from '../shard.js';
import { compareTexts, compareVersions } from '../syntax/version-order.js';

/** A printer column, as in a CustomResourceDefinition. */
export type Column = Readonly<{ name: string; type: string; format?: string; description?: string; priority?: number; jsonPath: string }>;

export type ServedVersion = Readonly<{ name: string; columns: readonly Column[] }>;

/** `versions`: the preferred one first. */
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
  /**
   * Which names are valid: DNS-1123 subdomains, or anything that fits between two slashes of a URL.
   */
  nameRule: 'subdomain' | 'path-segment';
  /** Whether strategic merge patches are accepted: only for types with a struct in client-go. */
  strategicMerge: boolean;
  versions: readonly ServedVersion[];
  storageVersion: string;
}>;

/**
 * `replicated`: which objects the agent pushes: all, those whose annotation
 * `internal.kcp.io/replicate` is not empty, or none. The agent reads the storage version.
 * `identityOf`: the name of one of kcp's own APIExports. A request for all clusters must name the
 * identity of that APIExport.
 */
export type TableType = ServedType & Readonly<{ replicated: 'always' | 'annotated' | 'never'; identityOf: string | undefined }>;

/**
 * The type that a URL names. `cluster` is '*' or a logical cluster; `identity` is undefined if the
 * URL has none.
 */
export type TypeRequest = Readonly<{
  group: string;
  version: string;
  resource: string;
  identity: string | undefined;
  cluster: string;
  /** Whether the client asks for PartialObjectMetadata. */
  partial: boolean;
}>;

/** `identity`: the identity to look up in the store; '*' means all of them. */
export type Resolution = Readonly<{ kind: 'found'; type: ServedType; identity: string }> | Readonly<{ kind: 'unknown' }>;

/**
 * All declarations of one type. `types`: the types that these declarations make, by shard, or '*'
 * for no particular shard. An entry is computed on first use; each change clears all.
 */
type DeclaredType = Readonly<{ declarations: Map<string, Declaration>; types: Map<string, ServedType> }>;

/** Discovery shows at most this many declared types. One logical cluster may declare as many. */
const describedMax = 1_000;

const unknown: Resolution = { kind: 'unknown' };

export class Catalogue {
  #table: readonly TableType[];
  /** The table, by group and resource. */
  #builtIn: ReadonlyMap<string, ServedType>;
  readonly #unserved: ReadonlyMap<string, ServedType>;
  readonly #quotas = new DeclarationQuotas();
  /** By group/resource, then by identity. */
  readonly #declaredTypes = new Map<string, Map<string, DeclaredType>>();
  /** By logical cluster, then by place. */
  readonly #byCluster = new Map<string, Map<string, Declaration>>();
  /**
   * By logical cluster, group and resource: when a request without an identity last began to mean
   * another identity.
   */
  readonly #identityChanges = new RecentChanges(0);
  #declared: readonly ServedType[] | undefined;

  constructor(table: readonly TableType[], unserved: readonly ServedType[] = []) {
    this.#table = table;
    this.#builtIn = byFamily(table);
    this.#unserved = byFamily(unserved);
  }

  get table(): readonly TableType[] {
    return this.#table;
  }

  /**
   * Replaces the table. `begun`: types that only the new table has. `ended`: types of the old table
   * that the new one does not cover (`isCovered`). `widened`: types of both tables, for which the
   * new table accepts requests that the old one refused.
   *
   * Throws CacheError, and changes nothing, if ClusterCachedResources declare a begun type. Its
   * objects are stored under the declared identity until the next start.
   */
  replaceTable(table: readonly TableType[]): Readonly<Record<'begun' | 'ended' | 'widened', readonly TableType[]>> {
    const [former, next] = [this.#builtIn, byFamily(table)];
    const begun = table.filter((type) => !former.has(familyOf(type)));
    const declared = begun.find((type) => this.#declaredTypes.has(familyOf(type)));
    if (declared !== undefined) {
      const name = formatGroupResource(declared);
      throw new CacheError(`${name} is declared by ClusterCachedResources: the types file applies to that type only from the next start`);
    }
    const ended = this.#table.filter((type) => !isCovered(type, next.get(familyOf(type))));
    const widened = table.filter((type) => former.has(familyOf(type)) && !isCovered(type, former.get(familyOf(type))));
    [this.#table, this.#builtIn] = [table, next];
    return { begun, ended, widened };
  }

  /** The core group may be spelled `core`. */
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
   * The type of the objects of exactly this resource that `shard` pushes (C4); undefined if nothing
   * declares it.
   */
  find(resource: Resource, shard: ShardName): ServedType | undefined {
    const family = formatFamily(resource.group, resource.resource);
    const type = this.#builtIn.get(family) ?? this.#unserved.get(family) ?? typeOf(this.#find(resource), shard);
    return type?.group === resource.group && type.identity === resource.identity ? type : undefined;
  }

  /** Whether a ClusterCachedResource declares exactly this resource, or waits until it may. */
  declares(resource: Resource): boolean {
    return resource.group !== coreAlias && (this.#find(resource) !== undefined || this.#quotas.isAwaited(resource));
  }

  /**
   * A ClusterCachedResource appeared or changed at that revision; `body` is its JSON text. Returns
   * the types that this ends, as they were served. A type ends if no declaration of it waits, and
   * the remaining declarations, if any, do not cover it (`covers`).
   */
  declare(place: DeclarationKey, body: Uint8Array, revision: Revision): readonly ServedType[] {
    const declaration = parseDeclaration(place, body);
    const family = declaration === undefined ? '' : formatFamily(declaration.group, declaration.resource);
    const isBuiltIn = this.#builtIn.has(family) || this.#unserved.has(family);
    return this.#replace(place, isBuiltIn ? undefined : declaration, revision);
  }

  /** Returns the ended types, as `declare` does. */
  withdraw(place: DeclarationKey, revision: Revision): readonly ServedType[] {
    return this.#replace(place, undefined, revision);
  }

  /** Whether every version of the type is still served, with the same kind and scope. */
  covers(former: ServedType): boolean {
    return isCovered(former, typeOf(this.#find(former)));
  }

  /**
   * Whether a request that names no identity may have referred to another identity, or to none, at
   * that revision.
   */
  hasIdentityChangedSince({ cluster, group, resource }: Pick<TypeRequest, 'cluster' | 'group' | 'resource'>, revision: Revision): boolean {
    if (revision >= this.#identityChanges.latest) return false;
    return this.#identityChanges.hasChangedSince(formatFamilyIn(cluster, formatFamily(group, resource)), revision);
  }

  /** Every declared type, one for each identity, ordered by name. */
  declared(): readonly ServedType[] {
    return (this.#declared ??= [...this.#declaredTypes.values()]
      .flatMap((identities) => [...identities.values()])
      .map((declared) => typeOf(declared))
      .sort((left, right) => compareTexts(formatResource(left), formatResource(right))));
  }

  /**
   * The types that discovery shows for a logical cluster, or for '*': of each resource only the
   * first identity, and at most `describedMax` declared types.
   */
  forCluster(cluster: string): readonly ServedType[] {
    const declared = cluster === '*' ? this.declared() : this.#declaredIn(cluster);
    const firsts = new Map<string, ServedType>();
    for (const type of declared) {
      if (firsts.size === describedMax) break;
      const family = formatFamily(type.group, type.resource);
      if (!firsts.has(family)) firsts.set(family, type);
    }
    return [...this.#builtIn.values(), ...firsts.values()];
  }

  /**
   * A request for '*' must name an identity. A request for metadata only may omit it: the answer
   * then covers all identities, and any of their types will do. For a logical cluster, that
   * cluster's own ClusterCachedResource decides.
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
      if (first === undefined || compareDeclarations(declaration, first) < 0) first = declaration;
    }
    return first;
  }

  #declaredIn(cluster: string): readonly ServedType[] {
    const declarations = [...(this.#byCluster.get(cluster)?.values() ?? [])].sort(compareDeclarations);
    return declarations.map((declaration) => typeOf(this.#find(declaration))).filter((type) => type !== undefined);
  }

  /**
   * For each logical cluster and type of these declarations: the identity that a request without an
   * identity means.
   */
  #meantBy(declarations: readonly Declaration[]): ReadonlyMap<string, string | undefined> {
    return new Map(
      declarations.map(({ group, resource, place: { cluster } }) => {
        const family = formatFamily(group, resource);
        return [formatFamilyIn(cluster, family), this.#firstIn(cluster, family, undefined)?.identity];
      }),
    );
  }

  #find({ group, resource, identity }: Declared): DeclaredType | undefined {
    return this.#declaredTypes.get(formatFamily(group, resource))?.get(identity);
  }

  #replace(place: DeclarationKey, declaration: Declaration | undefined, revision: Revision): readonly ServedType[] {
    const { former, ended, begun } = this.#quotas.replace(place, declaration);
    const changed = [...ended, ...begun];
    const served = new Map(changed.map((each) => [formatResource(each), typeOf(this.#find(each))]));
    // A declaration that only waited may end its type too, because the store may hold objects of
    // that type.
    if (former !== undefined && !served.has(formatResource(former))) served.set(formatResource(former), synthesize([former]));
    const meant = this.#meantBy(changed);
    for (const each of ended) this.#remove(each);
    for (const each of begun) this.#add(each);
    // A type that ends is not recorded as a change: its watches end with the type, once its objects
    // are gone.
    for (const [name, identity] of this.#meantBy(changed))
      if (identity !== undefined && identity !== meant.get(name)) this.#identityChanges.record(name, revision);
    if (changed.length > 0) this.#declared = undefined;
    return [...served.values()].filter((type) => type !== undefined).filter((type) => !this.#quotas.isAwaited(type) && !this.covers(type));
  }

  #add(declaration: Declaration): void {
    const place = formatDeclarationKey(declaration.place);
    const identities = entryOf(
      this.#declaredTypes,
      formatFamily(declaration.group, declaration.resource),
      () => new Map<string, DeclaredType>(),
    );
    const declared = entryOf(identities, declaration.identity, (): DeclaredType => ({ declarations: new Map(), types: new Map() }));
    declared.declarations.set(place, declaration);
    declared.types.clear();
    entryOf(this.#byCluster, declaration.place.cluster, () => new Map<string, Declaration>()).set(place, declaration);
  }

  #remove(declaration: Declaration): void {
    const place = formatDeclarationKey(declaration.place);
    removeFrom(this.#byCluster, declaration.place.cluster, place);

    const family = formatFamily(declaration.group, declaration.resource);
    const declared = this.#find(declaration);
    if (declared === undefined) return;
    declared.declarations.delete(place);
    declared.types.clear();
    if (declared.declarations.size === 0) removeFrom(this.#declaredTypes, family, declaration.identity);
  }
}

/** A cluster-scoped type without short names, categories and columns. */
export function plainType({ group, resource, identity }: Resource, kind: string, versions: readonly string[]): ServedType {
  return {
    group,
    resource,
    identity,
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: false,
    nameRule: 'subdomain',
    strategicMerge: false,
    versions: versions.map((name) => ({ name, columns: [] })),
    storageVersion: versions[0] ?? '',
  };
}

export function serves(type: Pick<ServedType, 'versions'>, version: string): boolean {
  return type.versions.some(({ name }) => name === version);
}

function isCovered(former: ServedType, type: ServedType | undefined): boolean {
  if (type === undefined || type.kind !== former.kind || type.namespaced !== former.namespaced) return false;
  return former.versions.every(({ name }) => serves(type, name));
}

function byFamily(types: readonly ServedType[]): ReadonlyMap<string, ServedType> {
  return new Map(types.map((type) => [familyOf(type), type]));
}

function familyOf({ group, resource }: Pick<ServedType, 'group' | 'resource'>): string {
  return formatFamily(group, resource);
}

/**
 * The map key of a group and resource. It is unambiguous because no name that is looked up contains
 * '/'.
 */
function formatFamily(group: string, resource: string): string {
  return group === coreAlias ? `/${resource}` : `${group}/${resource}`;
}

function formatFamilyIn(cluster: string, family: string): string {
  return JSON.stringify([cluster, family]);
}

/**
 * The type that all its declarations make together. If `shard` has declarations of the type, those
 * alone make it (C4).
 */
function typeOf(declared: DeclaredType, shard?: ShardName): ServedType;
function typeOf(declared: DeclaredType | undefined, shard?: ShardName): ServedType | undefined;
function typeOf(declared: DeclaredType | undefined, shard?: ShardName): ServedType | undefined {
  if (declared === undefined) return undefined;
  return entryOf(declared.types, shard ?? '*', () => {
    const all = [...declared.declarations.values()].sort(compareDeclarations);
    const own = all.filter(({ place }) => place.shard === shard);
    return synthesize(own.length === 0 ? all : own);
  });
}

function synthesize(declarations: readonly Declaration[]): ServedType {
  const [first] = declarations;
  if (first === undefined) throw new Error('a declared type without declarations');
  const versions = [...new Set(declarations.map(({ version }) => version))].sort(compareVersions);
  return { ...plainType(first, first.kind, versions), namespaced: first.namespaced };
}

function removeFrom(outer: Map<string, Map<string, unknown>>, outerName: string, innerName: string): void {
  const inner = outer.get(outerName);
  if (inner === undefined) return;
  inner.delete(innerName);
  if (inner.size === 0) outer.delete(outerName);
}
