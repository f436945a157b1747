/** The way between two caches of a tree, and the policies on it. */
import type { ModelCache } from './model-tree.js';
import type { ModelRule } from './model-rule.js';

type Ends = readonly [sender: readonly ModelRule[], receiver: readonly ModelRule[]];

/** The policies of both ends of a link in this direction. */
export function endsOf(from: ModelCache, to: ModelCache): Ends {
  const isUp = from.parent === to.name;
  const [child, parent] = isUp ? [from, to] : [to, from];
  const { accept, offer } = parent.children[child.name] ?? parent.children['*'] ?? { accept: [], offer: [] };
  return isUp ? [child.forward, accept] : [child.follow, offer];
}

/**
 * All caches from the one to the other, both included. Undefined if there is no way, or if one of
 * them is in a cycle, where there may be two ways.
 */
export function wayBetween(caches: ReadonlyMap<string, ModelCache>, from: string, to: string): readonly ModelCache[] | undefined {
  const [up, down] = [wayUp(caches, from), wayUp(caches, to)];
  if (up === undefined || down === undefined) return undefined;
  const meet = up.find((cache) => down.includes(cache));
  if (meet === undefined) return undefined;
  return [...up.slice(0, up.indexOf(meet)), meet, ...down.slice(0, down.indexOf(meet)).toReversed()];
}

/** Undefined in a cycle: a cache that follows one below itself. */
function wayUp(caches: ReadonlyMap<string, ModelCache>, name: string): readonly ModelCache[] | undefined {
  const way: ModelCache[] = [];
  for (let at = caches.get(name); at !== undefined;) {
    if (way.includes(at)) return undefined;
    way.push(at);
    at = at.parent === undefined ? undefined : caches.get(at.parent);
  }
  return way;
}
