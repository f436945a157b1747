/** Objects as a shard's pusher tells them: of types that are built in, whole, in the version that is stored. */
import { Catalogue } from '../../src/domain/catalogue.js';
import { kcpTypes } from '../../src/domain/catalogue-kcp.js';
import { compose } from '../../src/domain/compose.js';
import { scanObject } from '../../src/domain/object-text.js';
import { formatApiVersion, type Resource } from '../../src/domain/resource.js';
import { aKey, type Place } from '../support/objects.js';
import type { ModelObject } from './model-rule.js';

/** What pushers here push: two types of the cluster's scope. */
export const simResources: readonly Resource[] = ['apiexports', 'apiresourceschemas'].map((resource) => ({
  group: 'apis.kcp.io',
  resource,
  identity: '',
}));

export type SimContent = Readonly<{
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  spec?: Readonly<Record<string, unknown>>;
}>;

const catalogue = new Catalogue(kcpTypes);
const encoder = new TextEncoder();

export function aSimObject(place: Place, { labels = {}, annotations = {}, spec = {} }: SimContent = {}): ModelObject {
  const key = aKey(place);
  const type = catalogue.find(key.resource, key.shard);
  if (type === undefined) throw new Error(`${key.resource.resource} are not built in`);
  const version = type.storageVersion;
  const text = {
    apiVersion: formatApiVersion(type.group, version),
    kind: type.kind,
    metadata: {
      name: key.name,
      uid: `${key.shard}-${key.cluster}-${key.name}`,
      creationTimestamp: '2026-11-21T00:00:00Z',
      labels,
      annotations: { ...annotations, 'kcp.io/cluster': key.cluster, 'kcp.io/shard': key.shard },
    },
    spec,
  };
  const scanned = scanObject(encoder.encode(JSON.stringify(text)), 100);
  return { key, body: compose(scanned, { place: key, apiVersion: text.apiVersion, version, metadata: {} }) };
}
