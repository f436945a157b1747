/**
 * A set of types, given by patterns. Checking for a type, or comparing two sets, takes constant
 * time for each pattern.
 *
 * Without patterns, a set has every type that is served. Path entries are not served: a set has
 * them only if a pattern names their type.
 */
import type { TypePattern } from '../../domain/link-policy.js';
import { isPathType, pathTypes } from '../../domain/path-entry.js';
import { formatGroupResource, type Resource } from '../../domain/resource.js';

const unserved: ReadonlySet<string> = new Set(pathTypes.map(formatGroupResource));

export class TypeSet {
  /**
   * By group and resource: the identities, or undefined for every identity. Without a map: every
   * type that is served.
   */
  readonly #identities: ReadonlyMap<string, ReadonlySet<string> | undefined> | undefined;

  private constructor(identities: ReadonlyMap<string, ReadonlySet<string> | undefined> | undefined) {
    this.#identities = identities;
  }

  /** `patterns` undefined: every type that is served. */
  static of(patterns: readonly TypePattern[] | undefined): TypeSet {
    if (patterns === undefined) return new TypeSet(undefined);
    const identities = new Map<string, Set<string> | undefined>();
    for (const { group, resource, identity } of patterns) {
      const family = formatGroupResource({ group, resource });
      const known = identities.has(family) ? identities.get(family) : new Set<string>();
      identities.set(family, identity === undefined ? undefined : known?.add(identity));
    }
    return new TypeSet(identities);
  }

  has(resource: Resource): boolean {
    if (this.#identities === undefined) return !isPathType(resource);
    const family = formatGroupResource(resource);
    return this.#identities.has(family) && this.#identities.get(family)?.has(resource.identity) !== false;
  }

  meets(other: TypeSet): boolean {
    const own = this.#identities;
    const others = other.#identities;
    if (own === undefined) return others === undefined || isAnyServed(others);
    if (others === undefined) return isAnyServed(own);
    return [...own].some(([family, identities]) => {
      if (!others.has(family)) return false;
      const theirs = others.get(family);
      return identities === undefined || theirs === undefined || [...identities].some((identity) => theirs.has(identity));
    });
  }
}

function isAnyServed(identities: ReadonlyMap<string, unknown>): boolean {
  return [...identities.keys()].some((family) => !unserved.has(family));
}
