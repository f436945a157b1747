/**
 * The identity hashes of the APIExports of a logical cluster, as a cache has them. In a request for
 * all logical clusters, a type that is bound from an export has the form `resource:hash`. kcp's own
 * types are bound from exports of `root`.
 */
import { textAt } from '../domain/base/members.js';
import { jsonValue } from '../json/json-value.js';
import type { Absent, Ambiguous, CacheReader } from './cache-reader.js';
import type { Freshness, TypeFreshness } from './freshness-report.js';

/**
 * `identity`: '' until kcp has created one. `freshness`: that of the APIExports on `shard`;
 * undefined if the cache reports none.
 */
export type ExportIdentity = Readonly<{ export: string; shard: string; identity: string; freshness: Freshness | undefined }>;

/** Sorted by the names of the exports. Unless `whole` is true, some may be missing. */
export type ExportIdentities = Readonly<{ kind: 'listed'; identities: readonly ExportIdentity[] }> & TypeFreshness;

const exports = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports' };

/** `cluster`: a logical cluster's name, or a canonical path. Throws as `CacheReader.list` does. */
export async function exportIdentities(
  reader: Pick<CacheReader, 'list'>,
  cluster = 'root',
  signal?: AbortSignal,
): Promise<ExportIdentities | Absent | Ambiguous> {
  const listed = await reader.list({ ...exports, cluster }, signal);
  if (listed.kind !== 'listed') return listed;
  const { objects, ...freshness } = listed;
  const identities: ExportIdentity[] = [];
  for await (const { shard, text } of objects) {
    const object = jsonValue(text);
    identities.push({
      export: textAt(object, 'metadata', 'name') ?? '',
      shard,
      identity: textAt(object, 'status', 'identityHash') ?? '',
      freshness: freshness.shards.find((each) => each.shard === shard),
    });
  }
  return { ...freshness, identities: identities.toSorted((one, other) => (one.export < other.export ? -1 : 1)) };
}
