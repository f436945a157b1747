/**
 * Asks a cache which logical cluster a path leads to. Keeps no answer, because the path may lead
 * elsewhere a moment later.
 */
import { membersOf, type Members } from '../domain/base/members.js';
import { jsonValue } from '../json/json-value.js';
import { CacheFault } from './cache-fault.js';
import type { CacheReaderParts } from './cache-reader.js';
import { refusalOf } from './read-answer.js';

export class PathResolver {
  readonly #connection: CacheReaderParts['connection'];

  constructor({ connection }: Pick<CacheReaderParts, 'connection'>) {
    this.#connection = connection;
  }

  /**
   * `path`: names of Workspaces, `user:NAME` for a home, or the name of a logical cluster. Throws
   * CacheFault, or the reason of an aborted `signal`.
   */
  async resolve(path: string, signal?: AbortSignal): Promise<ResolvedPath> {
    const answer = await this.#connection.ask(resolveTarget(path), signal);
    if (answer.status !== 200) throw refusalOf(answer);
    return parsePathAnswer(answer.text);
  }

  /** Ends requests under way with a CacheFault, and closes the connections. */
  close(): void {
    this.#connection.close();
  }
}

/**
 * The cache's `PathAnswer`, with names as plain texts, and without members that older caches do not
 * send.
 */
export type ResolvedPath =
  | Readonly<{
      kind: 'cluster';
      /** The shard that has the logical cluster. */
      shard: string;
      cluster: string;
      /** The canonical path; undefined if the logical cluster has none. */
      path: string | undefined;
      /** Whether a Workspace on the way is unavailable. */
      unavailable: boolean;
      freshness: readonly ResolvedFreshness[];
    }>
  /** A mounted Workspace. The server behind the URL resolves the segments that follow. */
  | Readonly<{ kind: 'mount'; url: string; unavailable: boolean; freshness: readonly ResolvedFreshness[] }>
  /** The path leads nowhere. */
  | Readonly<{ kind: 'unknown' }>
  /** Unknown, but the cache may lack path entries of these shards. */
  | Readonly<{ kind: 'uncertain'; shards: readonly string[] }>
  /**
   * These shards claim the logical cluster. `expected`: the shard that its Workspace names;
   * undefined if none names one.
   */
  | Readonly<{ kind: 'disputed'; cluster: string; shards: readonly string[]; expected: string | undefined }>
  /** Several logical clusters without an owner claim this path. */
  | Readonly<{ kind: 'ambiguous'; clusters: readonly string[] }>;

/**
 * How fresh the path entries of a shard on the way are. `current`: the cache has all of them, as of
 * `lagMs` ago.
 */
export type ResolvedFreshness = Readonly<{ shard: string; current: boolean; lagMs: number | null }>;

export function resolveTarget(path: string): string {
  return `/services/cache/resolve?${new URLSearchParams({ path }).toString()}`;
}

/**
 * Parses a cache's answer to a path (domain/path-resolution.ts). Throws CacheFault, also for an
 * unknown kind, because no caller could act on it.
 */
export function parsePathAnswer(text: string): ResolvedPath {
  const members = membersOf(jsonValue(text));
  const { kind, path } = members;
  switch (kind) {
    case 'cluster': {
      const found = {
        shard: textIn(members, 'shard'),
        cluster: textIn(members, 'cluster'),
        path: typeof path === 'string' ? path : undefined,
      };
      return { kind, ...found, unavailable: members['unavailable'] === true, freshness: freshnessIn(members) };
    }
    case 'mount':
      return { kind, url: textIn(members, 'url'), unavailable: members['unavailable'] === true, freshness: freshnessIn(members) };
    case 'unknown':
      return { kind };
    case 'uncertain':
      return { kind, shards: textsIn(members, 'shards') };
    case 'disputed':
      return {
        kind,
        cluster: textIn(members, 'cluster'),
        shards: textsIn(members, 'shards'),
        expected: members['expected'] === undefined ? undefined : textIn(members, 'expected'),
      };
    case 'ambiguous':
      return { kind, clusters: textsIn(members, 'clusters') };
    default:
      throw unreadable('a kind');
  }
}

function freshnessIn(members: Members): readonly ResolvedFreshness[] {
  return listIn(members, 'freshness').map((each) => {
    const { current, lagMs, ...others } = membersOf(each);
    return { shard: textIn(others, 'shard'), current: current === true, lagMs: typeof lagMs === 'number' ? lagMs : null };
  });
}

function textsIn(members: Members, name: string): readonly string[] {
  return listIn(members, name).filter((each) => typeof each === 'string');
}

function listIn(members: Members, name: string): readonly unknown[] {
  const value = members[name];
  if (Array.isArray(value)) return value;
  throw unreadable(name);
}

function textIn(members: Members, name: string): string {
  const value = members[name];
  if (typeof value === 'string') return value;
  throw unreadable(name);
}

function unreadable(lacking: string): CacheFault {
  return new CacheFault('unreadable', `the answer of the cache does not say where the path leads: ${lacking} is missing`);
}
