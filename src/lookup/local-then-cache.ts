/**
 * Looks objects up as kcp's controllers do: first on their own shard, then in the cache, which has
 * the objects of all shards. The answer says where the object was found.
 *
 *   local            cache      answer
 *   has it           not asked  found, from local
 *   lacks it         has it     found, from cache, with its freshness
 *   lacks it         lacks it   absent: both were asked; `whole` says whether the cache proves it
 *   lacks it         ambiguous  ambiguous
 *   lacks it         a fault    thrown, because absence would be a guess
 *   another error    not asked  thrown, because the object may exist, newer than in the cache
 *
 * With `paths`, a path of any kind is resolved first, and both are asked by the name of the logical
 * cluster. If the path leads to no logical cluster, or may lead to none, the answer is
 * `unresolved`. Neither is then asked, because nothing is known of the object.
 */
import { parseClusterName } from '../domain/cluster.js';
import { unreachable } from '../domain/errors.js';
import type { Absent, Ambiguous, CacheReader } from './cache-reader.js';
import type { Freshness } from './freshness-report.js';
import { objectTarget, type ObjectRef } from './object-ref.js';
import type { PathResolver, ResolvedPath } from './path-resolver.js';

/** Returns undefined if there is no such object. `ref.cluster` may be a canonical path. */
export type LocalGetter<T> = (ref: ObjectRef, signal: AbortSignal | undefined) => Promise<T | undefined> | T | undefined;

export type LocalThenCacheParts<T> = Readonly<{
  local: LocalGetter<T>;
  cache: Pick<CacheReader, 'get'>;
  /**
   * Resolves paths. Without it, the cache resolves canonical paths by its own index, which knows
   * only paths that objects of the logical cluster name.
   */
  paths?: Pick<PathResolver, 'resolve'>;
  /** Parses the JSON text of an object of the cache. `get` throws what `parse` throws. */
  parse: (text: string) => T;
  /** Whether an error of `local` means that there is no such object. By default, none does. */
  isNotFound?: (error: unknown) => boolean;
}>;

export type LookUp<T> =
  | Readonly<{ kind: 'found'; from: 'local'; object: T }>
  /** `freshness`: undefined if the cache reports none for the object's type on its shard. */
  | Readonly<{ kind: 'found'; from: 'cache'; object: T; shard: string; freshness: Freshness | undefined }>
  | (Absent & Readonly<{ asked: readonly ['local', 'cache'] }>)
  | Ambiguous
  /** As far as is known, the path leads to no logical cluster of this installation. */
  | Readonly<{ kind: 'unresolved'; path: Exclude<ResolvedPath, Readonly<{ kind: 'cluster' }>> }>;

export class LocalThenCache<T> {
  readonly #parts: LocalThenCacheParts<T>;

  constructor(parts: LocalThenCacheParts<T>) {
    this.#parts = parts;
  }

  /**
   * Throws what `local` or `parse` throws, CacheFault, an Error for a reference that names nothing,
   * or the reason of an aborted `signal`.
   */
  async get(asked: ObjectRef, signal?: AbortSignal): Promise<LookUp<T>> {
    // A reference that names nothing must fail each time, not only if `local` lacks the object.
    objectTarget(asked);
    signal?.throwIfAborted();
    const path = await this.#resolved(asked.cluster, signal);
    if (path !== undefined && path.kind !== 'cluster') return { kind: 'unresolved', path };
    const ref = path === undefined ? asked : { ...asked, cluster: path.cluster };
    const own = await this.#local(ref, signal);
    if (own !== undefined) return { kind: 'found', from: 'local', object: own };

    const answer = await this.#parts.cache.get(ref, signal);
    switch (answer.kind) {
      case 'found': {
        const { shard, freshness, text } = answer;
        return { kind: 'found', from: 'cache', object: this.#parts.parse(text), shard, freshness };
      }
      case 'absent':
        // If the path entries are not current, the path may lead elsewhere, and the object may
        // exist there.
        return { ...answer, whole: answer.whole && isCurrent(path), asked: ['local', 'cache'] };
      case 'ambiguous':
        return answer;
      default:
        return unreachable(answer);
    }
  }

  /** Undefined if `cluster` is no path, or if there is no resolver. */
  async #resolved(cluster: string, signal: AbortSignal | undefined): Promise<ResolvedPath | undefined> {
    return parseClusterName(cluster) === undefined ? this.#parts.paths?.resolve(cluster, signal) : undefined;
  }

  async #local(ref: ObjectRef, signal: AbortSignal | undefined): Promise<T | undefined> {
    try {
      return await this.#parts.local(ref, signal);
    } catch (error) {
      if (this.#parts.isNotFound?.(error) === true) return undefined;
      throw error;
    }
  }
}

function isCurrent(path: ResolvedPath | undefined): boolean {
  return path?.kind !== 'cluster' || path.freshness.every(({ current }) => current);
}
