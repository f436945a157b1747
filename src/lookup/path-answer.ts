/** What a cache says that a path leads to (domain/path-resolution.ts), read from its answer. A kind that is not known here is a fault: nobody could act on it. */
import { membersOf, type Members } from '../domain/members.js';
import { CacheFault } from './cache-fault.js';
import { jsonValue } from '../json/json-value.js';

/** As `PathAnswer` of the cache, names as plain texts. Members that an older cache lacks are not among these. */
export type ResolvedPath =
  | Readonly<{
      kind: 'cluster';
      /** The shard that has the logical cluster. */
      shard: string;
      cluster: string;
      /** The canonical path; undefined where the logical cluster has none. */
      path: string | undefined;
      /** Whether a Workspace on the way is unavailable. */
      unavailable: boolean;
      freshness: readonly ResolvedFreshness[];
    }>
  /** Whatever serves the URL knows the segments behind the mounted Workspace. */
  | Readonly<{ kind: 'mount'; url: string; unavailable: boolean; freshness: readonly ResolvedFreshness[] }>
  /** It does not exist. */
  | Readonly<{ kind: 'unknown' }>
  /** It may exist: of these shards not everything is in the cache. */
  | Readonly<{ kind: 'uncertain'; shards: readonly string[] }>
  /** These shards claim the logical cluster. `expected`: where its Workspace says that it is; undefined where none says it. */
  | Readonly<{ kind: 'disputed'; cluster: string; shards: readonly string[]; expected: string | undefined }>
  /** Several logical clusters without an owner give themselves that path. */
  | Readonly<{ kind: 'ambiguous'; clusters: readonly string[] }>;

/** Of the path entries of one shard that led there. `current`: all that the shard has are in the cache, as of `lagMs` ago. */
export type ResolvedFreshness = Readonly<{ shard: string; current: boolean; lagMs: number | null }>;

/** Where it is asked. */
export function resolveTarget(path: string): string {
  return `/services/cache/resolve?${new URLSearchParams({ path }).toString()}`;
}

/** Throws CacheFault. */
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
  return new CacheFault('unreadable', `what the cache answered says of no path where it leads: ${lacking} is missing`);
}
