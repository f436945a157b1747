/** Which texts an HTTP header can carry, and the header that identifies a cache. */

/**
 * Whether a header can carry the text unchanged. Blanks at its ends would be lost, and control
 * characters would end the header.
 */
export function isHeaderValue(text: string): boolean {
  return text !== '' && text.trim() === text && !/\p{Cc}/u.test(text);
}

/**
 * A cache sends this header with every response. An agent must read from a shard, and fails if it
 * receives this header.
 */
export const serverHeader = 'x-strata-server';
export const cacheServer = 'cache';
