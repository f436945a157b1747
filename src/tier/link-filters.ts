/** The policies of a link: what the cache at each end lets through, both ways, and what both let through together. */
import type { CanonicalPath } from '../domain/cluster.js';
import { everyObjectOf, formatLinkPolicy, parseLinkPolicyText, type LinkPolicy } from '../domain/link-policy.js';
import { acceptedFromChild, policiesOfChild, shardsOfOthers, type LinkPolicies } from '../domain/link-policies.js';
import type { StoredObject } from '../domain/object.js';
import { pathTypes } from '../domain/path-entry.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { LinkFilter } from './link-filter.js';
import { EqualFilters } from './equal-filters.js';
import { anyPath } from './predicate.js';

/** What one end lets through. Up: forwarded by a child, accepted by a parent. Down: followed by a child, offered by a parent. */
export type EndPolicy = Readonly<{
  up: LinkPolicy;
  down: LinkPolicy;
  /** Of a parent: shards that this child may not claim, because it names them as those of others. */
  others?: ReadonlySet<ShardName>;
}>;

/** This end's policy towards its parent. */
export function parentPolicy({ forward, follow }: LinkPolicies): EndPolicy {
  return { up: forward, down: follow };
}

/** This end's policy towards a child. */
export function childPolicy(policies: LinkPolicies, name: string): EndPolicy {
  const { accept, offer } = policiesOfChild(policies, name);
  return { up: accept, down: offer, others: shardsOfOthers(policies, name) };
}

/** As it is sent to the other end. */
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

  /** `peer`: what the other end is to this one; a parent's way up is what it accepts from a child. */
  constructor(own: EndPolicy, other: EndPolicy, peer: Neighbour, equal = new EqualFilters()) {
    const [ownUp, otherUp] = peer === 'parent' ? [own.up, acceptedFromChild(other.up)] : [acceptedFromChild(own.up), other.up];
    this.#up = equal.of(ownUp, otherUp);
    this.#down = equal.of(own.down, other.down);
    this.#ownUp = equal.of(ownUp, everything);
    this.#ownDown = equal.of(own.down, everything);
    this.#ofOthers = own.others ?? new Set();
  }

  /** The direction that leads to a neighbour. */
  towards(neighbour: Neighbour): LinkFilter {
    return neighbour === 'parent' ? this.#up : this.#down;
  }

  /** The direction that comes from a neighbour. */
  from(neighbour: Neighbour): LinkFilter {
    return neighbour === 'parent' ? this.#down : this.#up;
  }

  /**
   * Whether a claim of the shard from a neighbour is accepted, whatever of its objects crosses. A child speaks only for shards that this end
   * accepts from it by name, or by '*' except those that it names for another child: a claim takes a shard away from whoever has it.
   */
  hearsClaim(shard: ShardName, from: Neighbour): boolean {
    return from === 'parent' || (this.#ownUp.coversShard(shard) && !this.#ofOthers.has(shard));
  }

  /** Whether the policy of this end alone accepts an object from a neighbour; `path`: of its logical cluster, as this end knows it. */
  accepts(object: Pick<StoredObject, 'key' | 'body'>, from: Neighbour, path: CanonicalPath | undefined): boolean {
    return this.ownFrom(from).lets(object, path);
  }

  /** Whether it would accept the object at some other path. */
  acceptsSomewhere(object: Pick<StoredObject, 'key' | 'body'>, from: Neighbour): boolean {
    return this.ownFrom(from).lets(object, anyPath);
  }

  /** Whether the policy of this end needs paths, of objects of any slice or of this one. */
  asksPaths(from: Neighbour): boolean {
    return this.ownFrom(from).asksPaths;
  }

  asksPath(slice: Slice, from: Neighbour): boolean {
    return this.ownFrom(from).asksPath(slice);
  }

  /** Whether this end accepts anything of the slice from a neighbour, whatever the other end lets out. */
  takes(slice: Slice, from: Neighbour): boolean {
    return this.ownFrom(from).covers(slice);
  }

  /** What the policy of this end alone accepts from a neighbour. */
  ownFrom(from: Neighbour): LinkFilter {
    return from === 'parent' ? this.#ownDown : this.#ownUp;
  }
}

const everything: LinkPolicy = [everyObjectOf(), everyObjectOf(pathTypes)];
