/**
 * The objects of two real kcp shards, each as it was last written. Deletes are left out: a test's
 * clean-up made them, and they would leave one shard empty.
 */
import type { KubeObject } from '../support/kube-client.js';
import { readRecording } from '../clients/golden/recording.js';

/** `collection` is the path to POST to; `shard` is the shard that owns the object. */
export type RecordedObject = Readonly<{ shard: string; collection: string; object: KubeObject }>;

export async function recordedObjects(name: string): Promise<readonly RecordedObject[]> {
  const objects = new Map<string, RecordedObject>();
  for (const { method, url, status, body } of await readRecording(name)) {
    if ((status ?? 0) >= 300 || method === 'GET' || method === 'DELETE') continue;
    const path = url.split('?', 1)[0] ?? url;
    if (body !== undefined) {
      const object = JSON.parse(body) as KubeObject;
      const collection = method === 'POST' ? path : path.slice(0, path.lastIndexOf('/'));
      const shard = /\/shards\/([^/]+)\//.exec(path)?.[1] ?? '';
      objects.set(`${collection}/${object.metadata.name}`, { shard, collection, object: withoutRevision(object) });
    }
  }
  return [...objects.values()];
}

function withoutRevision(object: KubeObject): KubeObject {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
