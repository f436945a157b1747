/** What a cache says of itself on every answer, so that whoever expects a shard there notices. */
export const serverHeader = 'x-strata-server';
export const cacheServer = 'cache';
