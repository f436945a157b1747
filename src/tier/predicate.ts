/**
 * What a rule of a link policy asks of an object beyond its type and its shard. Predicates that let the same through have the same text;
 * that of one which lets everything through is ''.
 */
import { parseDeclaration, type Declaration } from '../domain/declaration.js';
import { formatRequirements, formatTypePattern, type AnnotationTerm, type LinkRule, type TypePattern } from '../domain/link-policy.js';
import { parseAnyPath, pathAnnotation, type CanonicalPath, type ClusterName } from '../domain/cluster.js';
import type { Requirement } from '../domain/label-selector.js';
import { annotationsOf, labelsOf } from '../domain/object-metadata.js';
import type { Body, StoredObject } from '../domain/object.js';
import { matchesLabels } from '../domain/selector.js';
import { TypeSet } from './type-set.js';

/** Stands for whatever path the rule asks for. */
export const anyPath: unique symbol = Symbol('any path');
/** Of a logical cluster; undefined: its path is not known. */
export type KnownPath = CanonicalPath | typeof anyPath | undefined;
/** Remembers a pure function, as object-metadata.ts does: a declaration is read whole, and each link filter needs it. */
const declarations = new WeakMap<Body, Readonly<{ declaration: Declaration | undefined }>>();

export class Predicate {
  readonly text: string;
  readonly #clusters: ReadonlySet<ClusterName> | undefined;
  readonly #pathPrefix: string | undefined;
  readonly #labels: readonly Requirement[];
  readonly #annotations: readonly AnnotationTerm[];
  readonly #declares: TypeSet | undefined;

  private constructor(
    rule: Pick<LinkRule, 'clusters' | 'pathPrefix' | 'labels' | 'annotations'>,
    declares: readonly TypePattern[] | undefined,
  ) {
    const { clusters, pathPrefix, labels, annotations } = rule;
    this.#clusters = clusters === undefined ? undefined : new Set(clusters);
    this.#pathPrefix = pathPrefix;
    this.#labels = labels;
    this.#annotations = annotations;
    this.#declares = declares === undefined ? undefined : TypeSet.of(declares);
    const parts = {
      clusters,
      pathPrefix,
      labels: labels.length === 0 ? undefined : formatRequirements(labels),
      annotations: annotations.length === 0 ? undefined : annotations.map(({ key, value }) => (value === undefined ? [key] : [key, value])),
      declares: declares?.map(formatTypePattern).toSorted(),
    };
    this.text = Object.values(parts).every((part) => part === undefined) ? '' : JSON.stringify(parts);
  }

  static of(rule: LinkRule): Predicate {
    return new Predicate(rule, undefined);
  }

  /** Lets ClusterCachedResources through that declare one of these types, and nothing else. */
  static declaring(types: readonly TypePattern[]): Predicate {
    return new Predicate({ clusters: undefined, pathPrefix: undefined, labels: [], annotations: [] }, types);
  }

  /** Undefined: it may let other objects through as well. */
  get declares(): TypeSet | undefined {
    return this.#declares;
  }

  get asksPath(): boolean {
    return this.#pathPrefix !== undefined;
  }

  /** The cheapest conditions come first. */
  lets(object: Pick<StoredObject, 'key' | 'body'>, path: KnownPath): boolean {
    const { key, body } = object;
    if (this.#clusters?.has(key.cluster) === false) return false;
    if (this.#labels.length > 0 && !matchesLabels(this.#labels, labelsOf(body))) return false;
    if (this.#pathPrefix !== undefined && !isWithin(this.#pathPrefix, ownPathOf(body) ?? path)) return false;
    if (this.#annotations.length > 0 && !matchesAnnotations(this.#annotations, annotationsOf(body))) return false;
    return this.#declares === undefined || this.#letsDeclaration(this.#declares, object);
  }

  #letsDeclaration(types: TypeSet, { key, body }: Pick<StoredObject, 'key' | 'body'>): boolean {
    const known = declarations.get(body) ?? { declaration: parseDeclaration(key, body.bytes) };
    declarations.set(body, known);
    return known.declaration !== undefined && types.has(known.declaration);
  }
}

/** The path in an object's annotation. A malformed one counts as none, as it does when the object comes in. */
export function ownPathOf(body: Body): string | undefined {
  const path = annotationsOf(body).get(pathAnnotation);
  return path === undefined ? undefined : parseAnyPath(path);
}

function isWithin(prefix: string, path: string | typeof anyPath | undefined): boolean {
  if (path === anyPath) return true;
  return path !== undefined && path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === ':');
}

function matchesAnnotations(terms: readonly AnnotationTerm[], annotations: ReadonlyMap<string, string>): boolean {
  return terms.every(({ key, value }) => (value === undefined ? annotations.has(key) : annotations.get(key) === value));
}
