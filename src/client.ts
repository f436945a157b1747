/**
 * The exports of the package. With them a program pushes the objects of a shard into a cache, reads
 * objects (locally first, then from a cache) and resolves paths. Most programs need only
 * `openSender`, `openCacheReader` and `openPathResolver`. The classes `Sender` and `CacheReader`
 * accept another clock or transport.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from './clock.js';
import type { Log } from './diagnostics/log.js';
import { parseShardName } from './domain/shard.js';
import { connectSocket, defaultConnectOptions, type ClientIdentity } from './frames/connect-socket.js';
import { connectPath } from './frames/socket-options.js';
import { CacheConnection } from './lookup/cache-connection.js';
import { CacheReader, defaultLookupBounds, type LookupBounds } from './lookup/cache-reader.js';
import { WatchedTypes, type WatchedRef } from './lookup/watched-types.js';
import { PathResolver } from './lookup/path-resolver.js';
import { defaultSenderBounds } from './sender/sender-options.js';
import { Sender } from './sender/sender.js';
import { version } from './version.js';

export { parseClusterName, type ClusterName } from './domain/cluster.js';
export type { Resource } from './domain/resource.js';
export { parseShardName, type ShardName } from './domain/shard.js';
export type { Slice } from './domain/slice.js';
export type { PushedKey, PushedObject } from './frames/frame.js';
export { connectSocket, defaultConnectOptions, type ClientIdentity } from './frames/connect-socket.js';
export { CacheConnection, type CacheConnectionOptions } from './lookup/cache-connection.js';
export { CacheFault, type FaultKind } from './lookup/cache-fault.js';
export {
  CacheReader,
  type Absent,
  type Ambiguous,
  type CacheReaderOptions,
  type CacheReaderParts,
  type Found,
  type Listed,
} from './lookup/cache-reader.js';
export { exportIdentities, type ExportIdentities, type ExportIdentity } from './lookup/export-identities.js';
export type { Freshness, TypeFreshness } from './lookup/freshness-report.js';
export { LocalThenCache, type LocalGetter, type LocalThenCacheParts, type LookUp } from './lookup/local-then-cache.js';
export { defaultLookupBounds, type LookupBounds } from './lookup/cache-reader.js';
export type { CollectionRef, ObjectRef, TypeRef } from './lookup/object-ref.js';
export type { ResolvedFreshness, ResolvedPath } from './lookup/path-resolver.js';
export { PathResolver } from './lookup/path-resolver.js';
export type { CachedObject, HttpAnswer, Missing } from './lookup/read-answer.js';
export type { WatchState } from './lookup/watched-type.js';
export { WatchedTypes, type WatchedRef } from './lookup/watched-types.js';
export { Sender } from './sender/sender.js';
export { defaultSenderBounds, type SenderBounds, type SenderOptions } from './sender/sender-options.js';
export type { SenderEnd, SenderState, SliceProgress } from './sender/sender-state.js';
export type { SliceSource, Outgoing } from './sender/source.js';

export type OpenSenderOptions = Readonly<{
  /** The shard whose objects are pushed. The certificate in `identity` must speak for it. */
  shard: string;
  /** URLs of caches, such as `https://localhost:6443`. The sender tries them in turn. */
  caches: readonly [string, ...string[]];
  /** PEM texts. */
  identity: ClientIdentity;
  /** Program and version. The cache logs it. */
  agent: string;
  /**
   * True: the sender takes over the shard and ends its present pusher. False: the sender is a
   * standby until that pusher disconnects.
   */
  takesOver?: boolean;
  /** Without it nothing is logged. */
  log?: Log;
}>;

const randomSteps = 2 ** 32;

/**
 * A sender over websockets, with default bounds. It does nothing until `run`. Throws when `shard`
 * is not a valid shard name.
 */
export function openSender({ shard: name, caches, identity, agent, takesOver = false, log = silent }: OpenSenderOptions): Sender {
  const shard = parseShardName(name);
  if (shard === undefined) throw new Error(`${JSON.stringify(name)} is no name of a shard`);
  const clock = systemClock;
  return new Sender(
    {
      clock,
      log,
      turn,
      random,
      connect: (url, signal) => connectSocket(url, identity, { clock, signal }, defaultConnectOptions),
    },
    {
      ...defaultSenderBounds,
      shard,
      process: randomUUID(),
      takesOver,
      urls: caches.map((cache) => new URL(connectPath, cache).href),
      agent,
    },
  );
}

export type OpenPathResolverOptions = Readonly<{
  /** URL of the cache, such as `https://localhost:6443`. */
  cache: string;
  /**
   * PEM texts, or a function that returns them. The function is called for each request, so the
   * next request uses a renewed certificate.
   */
  identity: ClientIdentity | (() => ClientIdentity);
  /** Override the default bounds. Durations are in milliseconds. */
  bounds?: Partial<LookupBounds>;
}>;

/**
 * Resolves paths with one cache over HTTPS. It keeps connections until `close`. Throws when `cache`
 * is no https URL.
 */
export function openPathResolver({ cache, identity, bounds }: OpenPathResolverOptions): PathResolver {
  const options = Object.freeze({ ...defaultLookupBounds, ...bounds, cache });
  return new PathResolver({ connection: new CacheConnection({ clock: systemClock, identity: givenBy(identity) }, options) });
}

export type OpenCacheReaderOptions = OpenPathResolverOptions &
  Readonly<{
    /** Types that are read often. The reader watches each and keeps all its objects in memory. */
    watch?: readonly WatchedRef[];
    /** The log of the watches. Without it nothing is logged. */
    log?: Log;
  }>;

/**
 * Reads one cache over HTTPS. It keeps connections until `close`. Throws when `cache` is no https
 * URL.
 */
export function openCacheReader({ cache, identity, watch = [], bounds, log = silent }: OpenCacheReaderOptions): CacheReader {
  const clock = systemClock;
  const options = Object.freeze({ ...defaultLookupBounds, ...bounds, cache });
  const own = givenBy(identity);
  const connection = new CacheConnection({ clock, identity: own }, options);
  const access = {
    server: `${new URL(cache).origin}/services/cache/shards/*`,
    get serverName() {
      return own().serverName;
    },
    insecure: false,
    credentials: async () => {
      const { ca, certificate, key } = own();
      return { certificate, key, ...(ca !== undefined && { ca }) };
    },
  };
  const parts = { access, clock, random, log, userAgent: `strata/${version()} (look-up)` };
  return new CacheReader({ clock, connection, watched: WatchedTypes.open(parts, watch, options) }, options);
}

function givenBy(identity: OpenPathResolverOptions['identity']): () => ClientIdentity {
  return typeof identity === 'function' ? identity : () => identity;
}

function random(): number {
  return randomInt(randomSteps) / randomSteps;
}

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };
