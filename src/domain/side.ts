/**
 * Where a cache's truth about a shard comes from: its own pushers, one child, or the parent. A child is known by the name that
 * its certificate gives it, which outlives its disk.
 */
export type LinkSide = 'parent' | `child/${string}`;

export type Side = 'local' | LinkSide;

export function childSide(name: string): LinkSide {
  return `child/${name}`;
}

/** The name of the child that a side is; undefined for the others. */
export function childOf(side: Side): string | undefined {
  return side.startsWith('child/') ? side.slice('child/'.length) : undefined;
}

/**
 * Whether what a cache has of a shard goes to the cache at the other end of a link. The table of the tree: nothing goes back to
 * the side it came from, and nothing of the parent's goes up, for that is the side it came from (G11).
 *
 *   shard's side   to the parent   to child d
 *   local          yes             yes
 *   child/c        yes             if d is not c
 *   parent         no              yes
 *   none           no              no
 */
export function flows(side: Side | undefined, to: LinkSide): boolean {
  return side !== undefined && side !== to;
}
