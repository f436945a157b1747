import type { CacheConnectionOptions } from './cache-connection.js';
import type { CacheReaderOptions } from './cache-reader.js';
import type { WatchedTypeOptions } from './watched-type.js';

export type LookupBounds = Omit<CacheConnectionOptions, 'cache'> & CacheReaderOptions & WatchedTypeOptions;

/** `answerBytesMax` leaves room to spare: a page of a list usually has a few hundred kilobytes. */
export const defaultLookupBounds: LookupBounds = Object.freeze({
  timeoutMs: 10_000,
  answerBytesMax: 16 * 1024 * 1024,
  connectionsMax: 16,
  questionsMax: 1_000,
  reportAgeMaxMs: 1_000,
  freshnessTimeoutMs: 2_000,
  pageObjectsMax: 250,
  watchedObjectsMax: 100_000,
  watchedBytesMax: 256 * 1024 * 1024,
});
