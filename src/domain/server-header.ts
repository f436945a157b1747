/**
 * A cache sends this header with every response, so that an agent notices if its source is a cache
 * and not a shard.
 */
export const serverHeader = 'x-strata-server';
export const cacheServer = 'cache';
