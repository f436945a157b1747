/**
 * The syncs of a slice and of its logical clusters: which of them the source is within, and how many objects each has had. Once the connection is lost,
 * nobody knows whether what was sent of one has arrived that was not acknowledged to its end.
 *
 * Bound: one entry for each logical cluster that the source has begun.
 */
import type { Pending } from './batch.js';
import type { Outgoing } from './source.js';

/** `order`: of its begin (batch.ts). `objects`: put since then. */
type SentCluster = { readonly order: number; objects: number };

export class SyncsUnderWay {
  #isWithin = false;
  readonly #withinClusters = new Set<string>();
  #objects = 0;
  /** Those that were not acknowledged to their end. */
  readonly #sentClusters = new Map<string, SentCluster>();
  /** By logical cluster, '' for the slice: the order of the last begin that was heard, or of a keep, and whose end was not acknowledged. */
  readonly #begun = new Map<string, number>();

  /** Put since the begin of the slice that was sent last. */
  get objects(): number {
    return this.#objects;
  }

  /** Whether anything is being synced: the receiver may lack what came before the begin, and has no part of it yet. */
  get areUnderWay(): boolean {
    return this.#begun.size > 0;
  }

  /** Whether the sync of a logical cluster was sent, and not acknowledged to its end. */
  get areClustersOpen(): boolean {
    return this.#sentClusters.size > 0;
  }

  /** Notes what the source says; returns whether it belongs to a sync. */
  hear(outgoing: Outgoing, order: number): boolean {
    switch (outgoing.kind) {
      case 'begin':
        this.#withinClusters.clear();
        this.#begun.clear();
        this.#begun.set('', order);
        return (this.#isWithin = true);
      case 'end':
        return (this.#isWithin = false);
      case 'clusterBegin':
        this.#withinClusters.add(outgoing.cluster);
        this.#begun.set(outgoing.cluster, order);
        return true;
      case 'clusterKeep':
        this.#begun.set(outgoing.cluster, order);
        return true;
      case 'clusterEnd':
        this.#withinClusters.delete(outgoing.cluster);
        return this.#isWithin;
      case 'put':
        return this.#isWithin || this.#withinClusters.has(outgoing.object.cluster);
      case 'delete':
        return this.#isWithin;
    }
  }

  /** They are about to be sent in one frame. */
  send(items: readonly Pending[]): void {
    for (const { outgoing, order } of items) {
      if (outgoing.kind === 'begin') {
        this.#objects = 0;
        this.#sentClusters.clear();
      }
      if (outgoing.kind === 'clusterBegin') this.#sentClusters.set(outgoing.cluster, { order, objects: 0 });
      if (outgoing.kind !== 'put') continue;
      this.#objects += 1;
      const ofCluster = this.#sentClusters.get(outgoing.object.cluster);
      if (ofCluster !== undefined) ofCluster.objects += 1;
    }
  }

  /** How many objects were put since the begin that this end belongs to. */
  objectsOf(end: Outgoing): number {
    return end.kind === 'clusterEnd' ? (this.#sentClusters.get(end.cluster)?.objects ?? 0) : this.#objects;
  }

  /** Whether the logical cluster has begun since: what follows says anew what it has. */
  isOutdated(cluster: string, order: number): boolean {
    const sent = this.#sentClusters.get(cluster);
    return sent !== undefined && order < sent.order;
  }

  acknowledge({ outgoing, order }: Pending): void {
    if (outgoing.kind !== 'end' && outgoing.kind !== 'clusterEnd') return;
    const begun = outgoing.kind === 'end' ? '' : outgoing.cluster;
    if ((this.#begun.get(begun) ?? order) < order) this.#begun.delete(begun);
    if (outgoing.kind === 'clusterEnd' && !this.isOutdated(outgoing.cluster, order)) this.#sentClusters.delete(outgoing.cluster);
  }

  /** The slice starts over. */
  clear(): void {
    this.#withinClusters.clear();
    this.#sentClusters.clear();
    this.#begun.clear();
  }
}
