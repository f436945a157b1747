/** How a parent knows a cache: what follows `strata://cache/` in its certificate. */
const cacheNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The name of a cache, or undefined when the text is not one. */
export function parseCacheName(text: string): string | undefined {
  return cacheNamePattern.test(text) ? text : undefined;
}
