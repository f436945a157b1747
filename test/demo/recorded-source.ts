/** A recorded shard as the sources of a sender: each type's objects in one statement, then nothing more. */
import type { Resource } from '../../src/domain/resource.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import type { SliceSource, Told } from '../../src/sender/source.js';
import { shardName } from '../support/objects.js';
import type { RecordedObject } from './recorded-shards.js';

type Pushed = Readonly<{ slice: Slice; told: Told & { kind: 'put' } }>;

const batchObjects = 64;

export function recordedSources(
  shard: string,
  objects: readonly RecordedObject[],
): readonly Readonly<{ slice: Slice; source: SliceSource }>[] {
  const bySlice = new Map<string, { slice: Slice; told: Told[] }>();
  for (const { slice, told } of objects.filter((object) => object.shard === shard).map(read)) {
    const known = bySlice.get(formatSlice(slice)) ?? { slice, told: [] };
    known.told.push(told);
    bySlice.set(formatSlice(slice), known);
  }
  return [...bySlice.values()].map(({ slice, told }) => ({
    slice,
    source: { connected: true, open: (signal) => statement(told, signal) },
  }));
}

async function* statement(told: readonly Told[], signal: AbortSignal): AsyncGenerator<readonly Told[]> {
  yield [{ kind: 'begin', revision: '1' }];
  for (let i = 0; i < told.length; i += batchObjects) yield told.slice(i, i + batchObjects);
  yield [{ kind: 'end', revision: '1' }];
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

/** `/services/cache/shards/S/clusters/C/apis/G/V/[namespaces/N/]R` */
function read({ shard, collection, object }: RecordedObject): Pushed {
  const found = /\/clusters\/([^/]+)\/apis\/([^/]+)\/([^/]+)\/(?:namespaces\/([^/]+)\/)?([^/:]+)(?::([^/]+))?$/.exec(collection);
  if (found === null) throw new Error(`${collection} is no collection`);
  const [, cluster = '', group = '', version = '', namespace = '', plural = '', identity = ''] = found;
  const resource: Resource = { group, resource: plural, identity };
  const name = object.metadata.name ?? '';
  const body = new TextEncoder().encode(JSON.stringify(object));
  return {
    slice: { shard: shardName(shard), resource },
    told: { kind: 'put', version, object: { cluster, namespace, name, sourceVersion: '1', body } },
  };
}
