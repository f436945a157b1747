/**
 * The name that follows `strata://cache/` in a cache's certificate; its parent knows the cache by
 * it.
 */
const cacheNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function parseCacheName(text: string): string | undefined {
  return cacheNamePattern.test(text) ? text : undefined;
}
