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
 */
import { unreachable } from '../domain/errors.js';
import type { Absent, Ambiguous, CacheReader } from './cache-reader.js';
import type { Freshness } from './freshness-report.js';
import { objectTarget, type ObjectRef } from './object-ref.js';

/** Undefined when there is no such object. `ref.cluster` may be a canonical path. */
export type LocalGetter<T> = (ref: ObjectRef, signal: AbortSignal | undefined) => Promise<T | undefined> | T | undefined;

export type LocalThenCacheParts<T> = Readonly<{
  local: LocalGetter<T>;
  cache: Pick<CacheReader, 'get'>;
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
  | Ambiguous;

export class LocalThenCache<T> {
  readonly #parts: LocalThenCacheParts<T>;

  constructor(parts: LocalThenCacheParts<T>) {
    this.#parts = parts;
  }

  /** Throws what `local` or `parse` throws; CacheFault; an Error for a reference that names nothing; the reason of an aborted `signal`. */
  async get(ref: ObjectRef, signal?: AbortSignal): Promise<LookUp<T>> {
    // A reference that names nothing is a mistake each time, not only when local lacks the object.
    objectTarget(ref);
    signal?.throwIfAborted();
    const own = await this.#local(ref, signal);
    if (own !== undefined) return { kind: 'found', from: 'local', object: own };

    const answer = await this.#parts.cache.get(ref, signal);
    switch (answer.kind) {
      case 'found': {
        const { shard, freshness, text } = answer;
        return { kind: 'found', from: 'cache', object: this.#parts.parse(text), shard, freshness };
      }
      case 'absent':
        return { ...answer, asked: ['local', 'cache'] };
      case 'ambiguous':
        return answer;
      default:
        return unreachable(answer);
    }
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
