/**
 * One Edge for all links whose policies say the same: what is found out of a slice or a change for one child holds for a thousand.
 *
 * Bound: `edgesMax` that some link still uses; beyond them a link gets one of its own.
 */
import { formatEdgePolicy, type EdgePolicy } from '../domain/edge-policy.js';
import { Edge } from './edge.js';

const edgesMax = 256;

export class EqualEdges {
  readonly #known = new Map<string, WeakRef<Edge>>();

  of(own: EdgePolicy, other: EdgePolicy): Edge {
    const text = JSON.stringify([formatEdgePolicy(own), formatEdgePolicy(other)]);
    const known = this.#known.get(text)?.deref();
    if (known !== undefined) return known;
    const edge = new Edge(own, other);
    if (this.#known.size >= edgesMax) this.#forgetUnused();
    if (this.#known.size < edgesMax) this.#known.set(text, new WeakRef(edge));
    return edge;
  }

  #forgetUnused(): void {
    for (const [text, edge] of this.#known) if (edge.deref() === undefined) this.#known.delete(text);
  }
}
