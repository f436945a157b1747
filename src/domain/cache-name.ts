/** How a cache is known to its parent: what stands behind `strata://cache/` in its certificate. */
const cacheNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The name of a cache, or undefined when the text is none. */
export function parseCacheName(text: string): string | undefined {
  return cacheNamePattern.test(text) ? text : undefined;
}
