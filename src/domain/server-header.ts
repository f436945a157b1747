/**
 * A cache sends this header with every response, so that a client that expects a kcp shard notices.
 */
export const serverHeader = 'x-strata-server';
export const cacheServer = 'cache';
