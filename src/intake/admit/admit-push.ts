/**
 * Decides one object or key from a pusher or a link: the push for the store, or a refusal.
 *
 * P1 An admitted object reads back as it was sent, without the metadata members that Kubernetes
 *    does not know. A replica keeps the uid, times and generation of its source. If a shard sends
 *    the annotation that marks kept names, the cache drops that annotation, because only writes to
 *    the copy set marks (KEPT-2).
 * P2 The slice and the key alone determine where an object is. An annotation that claims another
 *    place comes from a bug or from malice. Such an object is refused, so that the claim is
 *    reported instead of overwritten.
 * P3 A body without a uid is refused, because a uid made up here would differ at every sync.
 * P4 A path entry is no Kubernetes object and has no metadata. It is stored unchanged (PATH-1).
 */
import { serves, type ServedType } from '../../domain/catalogue/catalogue.js';
import { parseClusterName, type CanonicalPath, type ClusterName } from '../../domain/cluster.js';
import { compose } from '../../json/compose.js';
import { badRequest, invalid, Refused, type Refusal } from '../../domain/errors.js';
import { addedMax, nothingAdded } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Body, StoredObject } from '../../domain/object.js';
import { attempt, mustParse, type Parsed } from '../../domain/parsed.js';
import { isPathType, parsePathEntry, pathEntryBody, pathOfEntry } from '../../domain/path-entry.js';
import type { Push, Speaker } from '../../domain/push.js';
import { formatApiVersion, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { unmarked } from '../../json/kept-members.js';
import type { Allocate } from '../../json/text-edits.js';
import type { PushedKey, PushedObject } from '../../frames/frame.js';
import { createCauses, keyCharactersMax, keyCauses } from './check-meta.js';
import { namespaceStamp } from './object-namespace.js';
import { pathOf, type ObjectMeta } from '../../json/object-meta.js';
import { readObject } from './read-object.js';

export type PushInputs = Readonly<{
  type: ServedType;
  resource: Resource;
  version: string;
  shard: ShardName;
  by: Speaker;
  bodyBytesMax: number;
  /** Logical clusters that are accepted although their names begin with `system:`. */
  systemClusters: ReadonlySet<string>;
  allocate: Allocate;
  /** Whether the policy accepts an object that is otherwise valid. */
  accepts?: (object: Pick<StoredObject, 'key' | 'body'>) => boolean;
}>;

type KeyInputs = Pick<PushInputs, 'type' | 'resource' | 'shard' | 'systemClusters'>;

export function admitObject(object: PushedObject, inputs: PushInputs): Parsed<Push> {
  return attempt(() => {
    const { type, version, by, bodyBytesMax } = inputs;
    const key = readKey(object, inputs);
    if (object.body === undefined) return { kind: 'keep', key, by };
    if (!serves(type, version))
      throw new Refused(badRequest(`this cache does not serve ${type.resource} in the version ${JSON.stringify(version.slice(0, 64))}`));
    if (object.body.length > bodyBytesMax) throw new Refused(tooLarge(object.body.length, bodyBytesMax));
    const { body, path } = isPathType(type) ? readEntry(key, object.body, inputs) : readReplica(key, object.body, inputs);
    if (inputs.accepts?.({ key, body }) === false) throw new Refused(notAccepted);
    return { kind: 'upsert', key, body, path, by };
  });
}

type Admitted = Readonly<{ body: Body; path: CanonicalPath | undefined }>;

function readReplica(key: Key, bytes: Uint8Array, { type, version, by, allocate }: PushInputs): Admitted {
  const added = by.kind === 'link' ? addedMax : nothingAdded;
  const { text, meta } = readObject(bytes, { type, version, fieldValidation: 'Ignore' }, added);
  confirmPlace(key, meta);
  const causes = createCauses(type, meta, key, added.bytes);
  if (causes.length > 0) throw new Refused(invalid({ group: type.group, kind: type.kind, name: key.name }, causes));
  if (meta.uid === '') throw new Refused(invalid({ group: type.group, kind: type.kind, name: key.name }, [uidMissing]));
  const stamp = {
    place: key,
    apiVersion: formatApiVersion(type.group, type.storageVersion),
    version: type.storageVersion,
    metadata: namespaceStamp(key.namespace, meta.namespace),
  };
  return { body: compose(by.kind === 'link' ? text : unmarked(text), stamp, allocate), path: pathOf(meta) };
}

function readEntry(key: Key, bytes: Uint8Array, { allocate }: PushInputs): Admitted {
  const entry = mustParse(parsePathEntry(key.resource, key.name, bytes));
  const own = allocate(bytes.length);
  own.set(bytes);
  return { body: pathEntryBody(own), path: pathOfEntry(entry) };
}

/** A `keep` leaves the stored object of the key unchanged. */
export function admitKey(kind: 'retract' | 'keep', pushed: PushedKey, inputs: PushInputs): Parsed<Push> {
  return attempt(() => ({ kind, key: readKey(pushed, inputs), by: inputs.by }));
}

/** Checks that an object of this key could exist here. */
export function admitPossibleKey(pushed: PushedKey, inputs: KeyInputs): Parsed<Key> {
  return attempt(() => {
    const key = readKey(pushed, inputs);
    const { type } = inputs;
    const causes = keyCauses(type, key);
    if (causes.length > 0) throw new Refused(invalid({ group: type.group, kind: type.kind, name: key.name }, causes));
    return key;
  });
}

const notAccepted: Refusal = { reason: 'Forbidden', message: 'the policy of this cache does not accept the object' };

const uidMissing = {
  reason: 'FieldValueRequired',
  message: 'Required value: a replica keeps the uid of its source',
  field: 'metadata.uid',
};

function readKey({ cluster, namespace, name }: PushedKey, { type, resource, shard, systemClusters }: KeyInputs): Key {
  if (name === '') throw new Refused(badRequest('a key needs a name'));
  if (name.length + namespace.length > keyCharactersMax)
    throw new Refused(badRequest(`a key has more than ${keyCharactersMax} characters`));
  if (type.namespaced !== (namespace !== '')) {
    throw new Refused(
      badRequest(
        type.namespaced ? 'the type is namespaced and the key has no namespace' : 'the type is not namespaced and the key has a namespace',
      ),
    );
  }
  return { resource, shard, cluster: readCluster(cluster, systemClusters), namespace, name };
}

function readCluster(text: string, systemClusters: ReadonlySet<string>): ClusterName {
  const cluster = parseClusterName(text);
  if (cluster === undefined) throw new Refused(badRequest('the cluster of a key must be the name of a logical cluster, not a path'));
  if (cluster.startsWith('system:') && !systemClusters.has(cluster)) {
    throw new Refused({ reason: 'Forbidden', message: `this cache accepts no objects of the logical cluster ${JSON.stringify(cluster)}` });
  }
  return cluster;
}

function confirmPlace(key: Key, { name, namespace, annotations }: ObjectMeta): void {
  if (name !== key.name) throw new Refused(badRequest('the name in the object differs from the name in its key'));
  if (namespace !== '' && namespace !== key.namespace)
    throw new Refused(badRequest('the namespace in the object differs from the namespace in its key'));
  const claims = [
    ['kcp.io/cluster', key.cluster],
    ['kcp.io/shard', key.shard],
  ] as const;
  for (const [annotation, place] of claims) {
    const claimed = annotations.get(annotation);
    if (claimed === undefined || claimed === place) continue;
    throw new Refused({
      reason: 'Forbidden',
      message: `the annotation ${annotation} is ${JSON.stringify(claimed.slice(0, 64))}, but the key has ${JSON.stringify(place)}`,
    });
  }
}

function tooLarge(bytes: number, bytesMax: number): Refusal {
  return { reason: 'RequestEntityTooLarge', message: `the object has ${bytes} bytes; at most ${bytesMax} are accepted` };
}
