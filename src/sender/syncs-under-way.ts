/**
 * Tracks the syncs of a slice and its logical clusters: which ones the source has not ended, and
 * how many objects each has sent. If the connection is lost before the end of a sync is
 * acknowledged, the sender cannot know which part of it has arrived.
 *
 * Bound: one entry for each logical cluster that the source has begun.
 */
import type { Pending } from './batch.js';
import type { Outgoing } from './source.js';

/** `order`: that of its begin (batch.ts). `objects`: the number put since then. */
type SentCluster = { readonly order: number; objects: number };

export class SyncsUnderWay {
  #isWithin = false;
  readonly #withinClusters = new Set<string>();
  #objects = 0;
  /** Logical clusters whose begin was sent and whose end is not acknowledged. */
  readonly #sentClusters = new Map<string, SentCluster>();
  /**
   * By logical cluster, or '' for the slice: the order of its last begin or keep, until the end is
   * acknowledged.
   */
  readonly #unacknowledgedBegins = new Map<string, number>();

  /** The number of objects put since the slice's last begin was sent. */
  get objects(): number {
    return this.#objects;
  }

  /**
   * Whether a sync is under way. Until the sync ends, the receiver may lack objects that are older
   * than its begin.
   */
  get areUnderWay(): boolean {
    return this.#unacknowledgedBegins.size > 0;
  }

  get hasOpenClusters(): boolean {
    return this.#sentClusters.size > 0;
  }

  /** Records a mutation from the source; returns whether it belongs to a sync. */
  record(outgoing: Outgoing, order: number): boolean {
    switch (outgoing.kind) {
      case 'begin':
        this.#withinClusters.clear();
        this.#unacknowledgedBegins.clear();
        this.#unacknowledgedBegins.set('', order);
        return (this.#isWithin = true);
      case 'end':
        return (this.#isWithin = false);
      case 'clusterBegin':
        this.#withinClusters.add(outgoing.cluster);
        this.#unacknowledgedBegins.set(outgoing.cluster, order);
        return true;
      case 'clusterKeep':
        this.#unacknowledgedBegins.set(outgoing.cluster, order);
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

  /** The number of objects put since the begin that this end belongs to. */
  objectsOf(end: Outgoing): number {
    return end.kind === 'clusterEnd' ? (this.#sentClusters.get(end.cluster)?.objects ?? 0) : this.#objects;
  }

  /** Whether a later sync of the logical cluster has begun, which sends its objects again. */
  isOutdated(cluster: string, order: number): boolean {
    const sent = this.#sentClusters.get(cluster);
    return sent !== undefined && order < sent.order;
  }

  acknowledge({ outgoing, order }: Pending): void {
    if (outgoing.kind !== 'end' && outgoing.kind !== 'clusterEnd') return;
    const begun = outgoing.kind === 'end' ? '' : outgoing.cluster;
    if ((this.#unacknowledgedBegins.get(begun) ?? order) < order) this.#unacknowledgedBegins.delete(begun);
    if (outgoing.kind === 'clusterEnd' && !this.isOutdated(outgoing.cluster, order)) this.#sentClusters.delete(outgoing.cluster);
  }

  /** Called when the slice starts over. */
  clear(): void {
    this.#withinClusters.clear();
    this.#sentClusters.clear();
    this.#unacknowledgedBegins.clear();
  }
}
