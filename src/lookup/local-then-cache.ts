/**
 * How controllers look objects up in kcp: first among those of their own shard, and if they are not there, in the cache, which
 * has those of all shards. The answer says who gave it.
 *
 *   local                   cache        answer
 *   has it                  not asked    found, from local
 *   has it not              has it       found, from cache, with its freshness
 *   has it not              has it not   absent: both were asked; `whole` says whether the cache's answer proves it
 *   has it not              ambiguous    ambiguous
 *   has it not              a fault      thrown: to call that absent would be a guess
 *   another error           not asked    thrown: the object may well be there, and newer than the cache's
 *
 * With `paths`, a path of any kind is resolved before either is asked, and both are asked by the name of the logical cluster. A path that leads to none, or
 * may lead to one, is `unresolved`, and neither is asked: without the logical cluster nothing is known of the object.
 */
import { parseClusterName } from '../domain/cluster.js';
import { unreachable } from '../domain/errors.js';
import type { Absent, Ambiguous, CacheReader } from './cache-reader.js';
import type { Freshness } from './freshness-report.js';
import { objectTarget, type ObjectRef } from './object-ref.js';
import type { ResolvedPath } from './path-answer.js';
import type { PathResolver } from './path-resolver.js';

/** Undefined when there is no such object. `ref.cluster` may be a canonical path. */
export type LocalGetter<T> = (ref: ObjectRef, signal: AbortSignal | undefined) => Promise<T | undefined> | T | undefined;

export type LocalThenCacheParts<T> = Readonly<{
  local: LocalGetter<T>;
  cache: Pick<CacheReader, 'get'>;
  /** Resolves paths. Without it the cache's index of canonical paths does, which knows those that objects of the logical cluster name. */
  paths?: Pick<PathResolver, 'resolve'>;
  /** From the JSON text of an object of the cache. What it throws is thrown by `get`. */
  parse: (text: string) => T;
  /** Whether an error of `local` means that there is no such object; by default none does. */
  isNotFound?: (error: unknown) => boolean;
}>;

export type LookUp<T> =
  | Readonly<{ kind: 'found'; from: 'local'; object: T }>
  /** `freshness` is undefined when the cache reports none for the object's type on its shard. */
  | Readonly<{ kind: 'found'; from: 'cache'; object: T; shard: string; freshness: Freshness | undefined }>
  | (Absent & Readonly<{ asked: readonly ['local', 'cache'] }>)
  | Ambiguous
  /** The path leads to no logical cluster of this installation, as far as is known. */
  | Readonly<{ kind: 'unresolved'; path: Exclude<ResolvedPath, Readonly<{ kind: 'cluster' }>> }>;

export class LocalThenCache<T> {
  readonly #parts: LocalThenCacheParts<T>;

  constructor(parts: LocalThenCacheParts<T>) {
    this.#parts = parts;
  }

  /** Throws what `local` or `parse` throws; CacheFault; an Error for a reference that names nothing; the reason of an aborted `signal`. */
  async get(asked: ObjectRef, signal?: AbortSignal): Promise<LookUp<T>> {
    // A reference that names nothing is a mistake each time, not only when local lacks the object.
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
        // Where the path may lead elsewhere by now, the object may be there.
        return { ...answer, whole: answer.whole && isCurrent(path), asked: ['local', 'cache'] };
      case 'ambiguous':
        return answer;
      default:
        return unreachable(answer);
    }
  }

  /** Undefined for what is no path, or is not to be resolved. */
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
