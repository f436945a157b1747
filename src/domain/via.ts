/**
 * The source of a cache's objects of a shard: its own writers, one child, or the parent. A child is
 * identified by the name in its certificate, because that name outlives the child's disk.
 */
export type Neighbour = 'parent' | `child/${string}`;

export type Via = 'local' | Neighbour;

export function childNeighbour(name: string): Neighbour {
  return `child/${name}`;
}

/** The name of the child; undefined if `via` is not a child. */
export function childOf(via: string): string | undefined {
  return via.startsWith('child/') ? via.slice('child/'.length) : undefined;
}

/**
 * Whether a cache sends a shard's objects to the other end of a link. A cache never returns objects
 * to the neighbour that sent them (G11), so it sends the parent no shard of the parent.
 *
 *  shard's via    to the parent   to child d
 *  local          yes             yes
 *  child/c        yes             if d is not c
 *  parent         no              yes
 *  none           no              no
 */
export function flows(via: Via | undefined, to: Neighbour): boolean {
  return via !== undefined && via !== to;
}

const cacheNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * The name after `strata://cache/` in a cache's certificate, by which the parent knows the cache.
 */
export function parseCacheName(text: string): string | undefined {
  return cacheNamePattern.test(text) ? text : undefined;
}
