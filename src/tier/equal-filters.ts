/**
 * Shares one link filter between all links with the same policies. A result that the filter has
 * computed for one child then serves a thousand.
 *
 * Bound: `filtersMax` filters that are in use. Beyond it, a link gets a filter of its own.
 */
import { formatLinkPolicy, type LinkPolicy } from '../domain/link-policy.js';
import { LinkFilter } from './link-filter.js';

const filtersMax = 256;

export class EqualFilters {
  readonly #known = new Map<string, WeakRef<LinkFilter>>();

  of(own: LinkPolicy, other: LinkPolicy): LinkFilter {
    const text = JSON.stringify([formatLinkPolicy(own), formatLinkPolicy(other)]);
    const known = this.#known.get(text)?.deref();
    if (known !== undefined) return known;
    const filter = new LinkFilter(own, other);
    if (this.#known.size >= filtersMax) this.#forgetUnused();
    if (this.#known.size < filtersMax) this.#known.set(text, new WeakRef(filter));
    return filter;
  }

  #forgetUnused(): void {
    for (const [text, filter] of this.#known) if (filter.deref() === undefined) this.#known.delete(text);
  }
}
