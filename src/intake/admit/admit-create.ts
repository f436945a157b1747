/**
 * Decides a POST: the object to store, or a refusal.
 *
 * A1 An admitted object reads back as it was sent, except for what the server fills in or drops
 *    below.
 * A2 A body with the annotation kcp.io/shard is a replica. Its uid, times and generation stay as
 *    sent; only a missing uid or creationTimestamp is filled in. Any other body is a new object:
 *    the server sets its uid, creationTimestamp and generation, and drops its deletion members. In
 *    both, no name counts as set on the copy, even if the body has the annotation for kept names
 *    (KEPT-2).
 * A3 The URL alone determines where the object is. The server overwrites annotations that name a
 *    place.
 */
import { compose, type MetadataStamp } from '../../json/compose.js';
import { badRequest, invalid, Refused } from '../../domain/errors.js';
import type { Mutation } from '../../domain/mutation.js';
import { attempt, type Parsed } from '../../domain/parsed.js';
import { formatApiVersion } from '../../domain/resource.js';
import type { CreateRequest } from '../../domain/write-request.js';
import { createCauses } from './check-meta.js';
import { plainCauses } from './meta-rules.js';
import { chooseNamespace, namespaceStamp } from './object-namespace.js';
import { pathOf, type ObjectMeta } from '../../json/object-meta.js';
import { readObject } from './read-object.js';
import { unmarked } from '../../json/kept-members.js';
import { formatTimestamp } from '../../domain/syntax/timestamp.js';

const shardAnnotation = 'kcp.io/shard';
/** Kubernetes limits a generated name to a DNS label, for every type. */
const prefixCharactersMax = 58;

export type CreateInputs = CreateRequest &
  Readonly<{
    nowMs: number;
    uid: () => string;
    /** Five random characters for the end of a generated name. */
    suffix: () => string;
  }>;

/**
 * `generated`: the server made up the name. If an object of that name exists, the caller admits the
 * request again.
 */
export type Admitted = Readonly<{ mutation: Extract<Mutation, { kind: 'put' }>; warnings: readonly string[]; generated: boolean }>;

export function admitCreate(bytes: Uint8Array, request: CreateInputs): Parsed<Admitted> {
  return attempt(() => {
    const { type, identity, shard, cluster } = request;
    const { text, meta, warnings } = readObject(bytes, request);
    const namespace = chooseNamespace(request, meta.namespace);
    const generated = meta.name === '' && meta.generateName !== '';
    const name = generated ? generateName(meta.generateName, request.suffix()) : meta.name;

    const causes = [...createCauses(type, meta, { name, namespace }), ...plainCauses(meta)];
    if (causes.length > 0) throw new Refused(invalid({ group: type.group, kind: type.kind, name }, causes));
    if (meta.resourceVersion !== '') throw new Refused(badRequest('resourceVersion should not be set on objects to be created'));

    const body = compose(unmarked(text), {
      place: request.dryRun ? undefined : { shard, cluster },
      apiVersion: formatApiVersion(type.group, type.storageVersion),
      version: type.storageVersion,
      metadata: {
        ...(generated && { name: JSON.stringify(name) }),
        ...namespaceStamp(namespace, meta.namespace),
        ...systemStamp(meta, request),
      },
    });
    const key = { resource: { group: type.group, resource: type.resource, identity }, shard, cluster, namespace, name };
    return { mutation: { kind: 'put', key, body, path: pathOf(meta), expect: 'absent' }, warnings, generated };
  });
}

function systemStamp(meta: ObjectMeta, { uid, nowMs }: CreateInputs): MetadataStamp {
  const isReplica = meta.annotations.has(shardAnnotation);
  const keepsUid = isReplica && meta.uid !== '';
  const keepsTime = isReplica && meta.creationTimestamp !== '';
  return {
    ...(!keepsUid && { uid: JSON.stringify(uid()) }),
    ...(!keepsTime && { creationTimestamp: JSON.stringify(formatTimestamp(nowMs)) }),
    ...(!isReplica && { generation: '1', deletionTimestamp: undefined, deletionGracePeriodSeconds: undefined }),
  };
}

/** Cuts between characters, because half a surrogate pair is no valid name. */
function generateName(prefix: string, suffix: string): string {
  const characters = Array.from(prefix.slice(0, 2 * prefixCharactersMax));
  return [...characters.slice(0, prefixCharactersMax), suffix].join('');
}
