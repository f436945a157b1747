/**
 * The conditions of a link policy's rule on an object, besides its type and shard. Predicates with
 * equal conditions have equal texts. Without conditions the text is '', and every object passes.
 */
import { parseDeclaration, type Declaration } from '../../domain/catalogue/declaration.js';
import { formatRequirements, formatTypePattern, type AnnotationTerm, type LinkRule, type TypePattern } from '../../domain/link-policy.js';
import { parseAnyPath, pathAnnotation, type CanonicalPath, type ClusterName } from '../../domain/cluster.js';
import type { Requirement } from '../../domain/syntax/label-selector.js';
import { annotationsOf, labelsOf } from '../../domain/object-metadata.js';
import type { Body, StoredObject } from '../../domain/object.js';
import { matchesLabels } from '../../domain/syntax/selector.js';
import { TypeSet } from './type-set.js';

/** Satisfies every `pathPrefix`. */
export const anyPath: unique symbol = Symbol('any path');
/** The path of a logical cluster. Undefined: not known. */
export type KnownPath = CanonicalPath | typeof anyPath | undefined;
/**
 * Memoizes a pure function, as object-metadata.ts does. Parsing a declaration reads the whole body,
 * and each link filter needs the result.
 */
const declarations = new WeakMap<Body, Readonly<{ declaration: Declaration | undefined }>>();

export class Predicate {
  readonly text: string;
  readonly #clusters: ReadonlySet<ClusterName> | undefined;
  readonly #pathPrefix: string | undefined;
  readonly #labels: readonly Requirement[];
  readonly #annotations: readonly AnnotationTerm[];
  readonly #declared: TypeSet | undefined;
  /**
   * The types whose declarations this predicate lets through. Undefined: it may let other objects
   * through too.
   */
  readonly declares: readonly TypePattern[] | undefined;

  constructor(rule: Pick<LinkRule, 'clusters' | 'pathPrefix' | 'labels' | 'annotations'>, declares?: readonly TypePattern[]) {
    const { clusters, pathPrefix, labels, annotations } = rule;
    this.#clusters = clusters === undefined ? undefined : new Set(clusters);
    this.#pathPrefix = pathPrefix;
    this.#labels = labels;
    this.#annotations = annotations;
    this.declares = declares;
    this.#declared = declares && TypeSet.of(declares);
    const parts = {
      clusters,
      pathPrefix,
      labels: labels.length === 0 ? undefined : formatRequirements(labels),
      annotations: annotations.length === 0 ? undefined : annotations.map(({ key, value }) => (value === undefined ? [key] : [key, value])),
      declares: declares?.map(formatTypePattern).toSorted(),
    };
    this.text = Object.values(parts).every((part) => part === undefined) ? '' : JSON.stringify(parts);
  }

  /** Lets through only the ClusterCachedResources that declare one of these types. */
  static declaring(types: readonly TypePattern[]): Predicate {
    return new Predicate({ clusters: undefined, pathPrefix: undefined, labels: [], annotations: [] }, types);
  }

  get needsPath(): boolean {
    return this.#pathPrefix !== undefined;
  }

  /** Checks the cheapest conditions first. */
  lets(object: Pick<StoredObject, 'key' | 'body'>, path: KnownPath): boolean {
    const { key, body } = object;
    if (this.#clusters?.has(key.cluster) === false) return false;
    if (this.#labels.length > 0 && !matchesLabels(this.#labels, labelsOf(body))) return false;
    if (this.#pathPrefix !== undefined && !isWithin(this.#pathPrefix, ownPathOf(body) ?? path)) return false;
    if (this.#annotations.length > 0 && !matchesAnnotations(this.#annotations, annotationsOf(body))) return false;
    return this.#declared === undefined || this.#letsDeclaration(this.#declared, object);
  }

  #letsDeclaration(types: TypeSet, { key, body }: Pick<StoredObject, 'key' | 'body'>): boolean {
    const known = declarations.get(body) ?? { declaration: parseDeclaration(key, body.bytes) };
    declarations.set(body, known);
    return known.declaration !== undefined && types.has(known.declaration);
  }
}

/**
 * The path in an object's annotation. A malformed path counts as none, as it does at the intake.
 */
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
