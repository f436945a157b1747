/** A recorded shard as the sources of a sender, one for each type. */
import type { Resource } from '../../src/domain/resource.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import { shardName } from '../support/objects.js';
import { LiveSource, type Put } from './live-source.js';
import type { RecordedObject } from './recorded-shards.js';

export type RecordedSlice = Readonly<{ slice: Slice; source: LiveSource }>;

export function recordedSources(shard: string, objects: readonly RecordedObject[]): readonly RecordedSlice[] {
  const bySlice = new Map<string, RecordedSlice>();
  for (const { slice, received } of objects.filter((object) => object.shard === shard).map(readRecorded)) {
    const known = bySlice.get(formatSlice(slice)) ?? { slice, source: new LiveSource() };
    known.source.put(received);
    bySlice.set(formatSlice(slice), known);
  }
  return [...bySlice.values()];
}

/** Parses `collection`: `/services/cache/shards/S/clusters/C/apis/G/V/[namespaces/N/]R`. */
export function readRecorded({ shard, collection, object }: RecordedObject): Readonly<{ slice: Slice; received: Put }> {
  const found = /\/clusters\/([^/]+)\/apis\/([^/]+)\/([^/]+)\/(?:namespaces\/([^/]+)\/)?([^/:]+)(?::([^/]+))?$/.exec(collection);
  if (found === null) throw new Error(`${collection} is no collection`);
  const [, cluster = '', group = '', version = '', namespace = '', plural = '', identity = ''] = found;
  const resource: Resource = { group, resource: plural, identity };
  const name = object.metadata.name ?? '';
  const body = new TextEncoder().encode(JSON.stringify(object));
  return {
    slice: { shard: shardName(shard), resource },
    received: { kind: 'put', version, object: { cluster, namespace, name, sourceVersion: '1', body } },
  };
}
