/**
 * What kcp's controllers leave in a cache: pkg/reconciler/cache of kcp as of August 2026
 * (dac74f59).
 * The model reconciles each change as it happens. With `isExact` it has the agent's rules
 * where they deliberately differ (docs/differences.md):
 *
 *                                                 kcp's controller           the agent
 *   labels of an object match no longer           the object stays           it leaves
 *   a ClusterCachedResource selects other labels  from the next change on    at once
 *   one of two that select an object goes         the copy goes first        it stays
 */
export type Local = Readonly<{
  state: number;
  labels: Readonly<Record<string, string>>;
  isMarked: boolean;
  isDeleting: boolean;
  hasFinalizers: boolean;
}>;

/**
 * A ClusterCachedResource of the declared type. `selects`: a label's value; undefined selects
 * everything.
 */
export type Declaring = Readonly<{ selects: string | undefined; isDeleting: boolean }>;

export const declaredType = 'instances.machines.svm.io';
export const markedType = 'clusterroles.rbac.authorization.k8s.io';

/** Objects and copies, by type, logical cluster and name. */
export class ControllerModel {
  readonly #isExact: boolean;
  readonly #locals = new Map<string, Local>();
  readonly #copies = new Map<string, number>();
  /** The ClusterCachedResources, by logical cluster and name. */
  readonly #declaring = new Map<string, Map<string, Declaring>>();

  constructor({ isExact }: { isExact: boolean }) {
    this.#isExact = isExact;
  }

  copies(type: string): Readonly<Record<string, number>> {
    const found = [...this.#copies].filter(([place]) => place.startsWith(`${type}|`));
    return Object.fromEntries(found.map(([place, state]) => [place.slice(type.length + 1), state] as const).toSorted());
  }

  /**
   * The objects of a type that are not being deleted. The copy of an object that is being deleted
   * may have any earlier state.
   */
  lasting(type: string): ReadonlySet<string> {
    const all = [...this.#locals].filter(([place, local]) => place.startsWith(`${type}|`) && !local.isDeleting);
    return new Set(all.map(([place]) => place.slice(type.length + 1)));
  }

  /** An object is written; undefined: it is deleted. */
  change(type: string, place: string, local: Local | undefined): void {
    const key = `${type}|${place}`;
    if (local === undefined) this.#locals.delete(key);
    else this.#locals.set(key, local);
    if (type === declaredType) this.#reconcileDeclared(key, clusterOf(place));
    else if (!place.startsWith('system:')) this.#reconcile(key, type === markedType && local?.isMarked !== true ? undefined : local);
  }

  /** A ClusterCachedResource is written; undefined: it is deleted. */
  declare(cluster: string, name: string, declaring: Declaring | undefined): void {
    const ofCluster = this.#declaring.get(cluster) ?? new Map<string, Declaring>();
    this.#declaring.set(cluster, ofCluster);
    const former = ofCluster.get(name);
    if (declaring === undefined) ofCluster.delete(name);
    else ofCluster.set(name, declaring);
    const own = (places: Iterable<string>): readonly string[] => [...places].filter((key) => key.startsWith(`${declaredType}|${cluster}|`));
    // Its copies are purged before its finalizer is removed.
    const isPurged = declaring?.isDeleting !== false && (!this.#isExact || this.#bringing(cluster).length === 0);
    if (isPurged) return void own(this.#copies.keys()).forEach((key) => this.#copies.delete(key));
    // A controller starts with all existing objects; afterwards it gets only events.
    const isStarted = former !== undefined && !former.isDeleting;
    if (!isStarted || this.#isExact) for (const key of own(this.#locals.keys())) this.#reconcileDeclared(key, cluster);
  }

  #reconcileDeclared(key: string, cluster: string): void {
    const bringing = this.#bringing(cluster);
    if (bringing.length === 0) return;
    const local = this.#locals.get(key);
    const isSelected = bringing.some(({ selects }) => selects === undefined || local?.labels['app'] === selects);
    if (local === undefined || isSelected) this.#reconcile(key, local);
    else if (this.#isExact) this.#copies.delete(key);
  }

  /** The ClusterCachedResources whose objects must be in the cache. */
  #bringing(cluster: string): readonly Declaring[] {
    return [...(this.#declaring.get(cluster)?.values() ?? [])].filter(({ isDeleting }) => !isDeleting);
  }

  #reconcile(key: string, local: Local | undefined): void {
    if (local !== undefined && !local.isDeleting) this.#copies.set(key, local.state);
    else if (local?.hasFinalizers !== true) this.#copies.delete(key);
  }
}

function clusterOf(place: string): string {
  return place.slice(0, place.indexOf('|'));
}
