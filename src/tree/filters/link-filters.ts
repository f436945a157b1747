/** The policies of both ends of a link, and the link filters of its two directions. */
import { everyObjectOf, formatLinkPolicy, parseLinkPolicyText, type LinkPolicy } from '../../domain/link-policy.js';
import { acceptedFromChild, policiesOfChild, shardsOfOthers, type LinkPolicies } from '../../domain/link-policies.js';
import { pathTypes } from '../../domain/path-entry.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import { LinkFilter } from './link-filter.js';

/**
 * The policy of one end. `up`: what a child forwards, or a parent accepts. `down`: what a parent
 * offers, or a child follows.
 */
export type EndPolicy = Readonly<{
  up: LinkPolicy;
  down: LinkPolicy;
  /**
   * At a parent: shards that this child may not claim, because `accept` of another child names
   * them.
   */
  others?: ReadonlySet<ShardName>;
}>;

export function parentPolicy({ forward, follow }: LinkPolicies): EndPolicy {
  return { up: forward, down: follow };
}

export function childPolicy(policies: LinkPolicies, name: string): EndPolicy {
  const { accept, offer } = policiesOfChild(policies, name);
  return { up: accept, down: offer, others: shardsOfOthers(policies, name) };
}

export function formatEndPolicy({ up, down }: EndPolicy): Readonly<{ up: string; down: string }> {
  return { up: formatLinkPolicy(up), down: formatLinkPolicy(down) };
}

export function parseEndPolicy(texts: Readonly<{ up: string; down: string }>): EndPolicy | undefined {
  const [up, down] = [parseLinkPolicyText(texts.up), parseLinkPolicyText(texts.down)];
  return up.kind === 'wrong' || down.kind === 'wrong' ? undefined : { up: up.policy, down: down.policy };
}

export class LinkFilters {
  readonly #up: LinkFilter;
  readonly #down: LinkFilter;
  readonly #ownUp: LinkFilter;
  readonly #ownDown: LinkFilter;
  readonly #ofOthers: ReadonlySet<ShardName>;

  /**
   * `peer`: what the other end is to this cache. From a child, a parent accepts only the shards
   * that the parent's policy names (`acceptedFromChild`).
   */
  constructor(own: EndPolicy, other: EndPolicy, peer: Neighbour, equal = new EqualFilters()) {
    const [ownUp, otherUp] = peer === 'parent' ? [own.up, acceptedFromChild(other.up)] : [acceptedFromChild(own.up), other.up];
    this.#up = equal.of(ownUp, otherUp);
    this.#down = equal.of(own.down, other.down);
    this.#ownUp = equal.of(ownUp, everything);
    this.#ownDown = equal.of(own.down, everything);
    this.#ofOthers = own.others ?? new Set();
  }

  /** The filter of what this cache sends to the neighbour. */
  towards(neighbour: Neighbour): LinkFilter {
    return neighbour === 'parent' ? this.#up : this.#down;
  }

  /** The filter of what the neighbour sends to this cache. */
  from(neighbour: Neighbour): LinkFilter {
    return neighbour === 'parent' ? this.#down : this.#up;
  }

  /**
   * Whether this end accepts a neighbour's claim of the shard, no matter which of its objects
   * cross. A claim takes a shard away from the cache that has it. So a child may claim only shards
   * that its `accept` names, or with '*' all shards that no other child's `accept` names.
   */
  acceptsClaim(shard: ShardName, from: Neighbour): boolean {
    return from === 'parent' || (this.#ownUp.coversShard(shard) && !this.#ofOthers.has(shard));
  }

  /** The policy of this end alone, as a filter of what the neighbour sends. */
  ownFrom(from: Neighbour): LinkFilter {
    return from === 'parent' ? this.#ownDown : this.#ownUp;
  }
}

const everything: LinkPolicy = [everyObjectOf(), everyObjectOf(pathTypes)];

const filtersMax = 256;

/**
 * Shares one link filter between all links with the same policies. A result that the filter has
 * computed for one child then serves a thousand.
 *
 * Bound: `filtersMax` filters that are in use. Beyond it, a link gets a filter of its own.
 */
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
