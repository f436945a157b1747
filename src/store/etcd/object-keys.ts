/**
 * The keys of objects in etcd, as kcp's own cache server has them. Pure.
 *
 *   PREFIX/GROUP/RESOURCE/customresources/SHARD/CLUSTER/[NAMESPACE/]NAME      a type that is always served
 *   PREFIX/GROUP/RESOURCE/IDENTITY/SHARD/CLUSTER/[NAMESPACE/]NAME             a declared type
 *   PREFIX/RESOURCE/IDENTITY/SHARD/CLUSTER/[NAMESPACE/]NAME                   one of the core group
 *
 * Six segments may be an object of a group without a namespace, or of the core group with one. What has a dot is a group, because no resource's name has one. An identity
 * is 64 hexadecimal digits, which neither a resource's nor a shard's name can be, so else the place where it stands first tells.
 *
 * Below PREFIX/apiextensions.k8s.io are the definitions that kcp's cache server keeps for itself: none of them is an object here.
 */
import { isUtf8 } from 'node:buffer';
import { parseClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import { parseShardName } from '../../domain/shard.js';

const builtIn = 'customresources';
const ownGroup = 'apiextensions.k8s.io';
const identityPattern = /^[0-9a-f]{64}$/;
/** Names and namespaces are admitted elsewhere, by their types; here only what could not be written back as the same key is refused. */
const segmentPattern = /^[^/]+$/;

/** The key as text; one that is no text is spelled as no text of ours is. */
export function keyText(key: Uint8Array): string {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return isUtf8(bytes) ? bytes.toString() : `binary ${bytes.toString('hex')}`;
}

export function formatObjectKey(prefix: string, { resource: { group, resource, identity }, shard, cluster, namespace, name }: Key): string {
  const type = group === '' ? [resource] : [group, resource];
  const place = namespace === '' ? [cluster] : [cluster, namespace];
  return [prefix, ...type, identity === '' ? builtIn : identity, shard, ...place, name].join('/');
}

/** Whether it is one of those that kcp's cache server keeps for itself. */
export function isOfUpstream(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}/${ownGroup}/`);
}

/** Undefined when the text is no object's key. */
export function parseObjectKey(prefix: string, text: string): Key | undefined {
  if (!text.startsWith(`${prefix}/`)) return undefined;
  const segments = text.slice(prefix.length + 1).split('/');
  if (segments[0] === ownGroup || !segments.every((segment) => segmentPattern.test(segment))) return undefined;
  const isCore = segments.length === 5 || (segments.length === 6 && isOfCore(segments));
  const [group, resource, kind, shardText, clusterText, ...names] = isCore ? ['', ...segments] : segments;
  const [namespace, name] = names.length === 1 ? ['', names[0]] : names;
  const [shard, cluster] = [parseShardName(shardText ?? ''), parseClusterName(clusterText ?? '')];
  const isWhole = names.length === 1 || names.length === 2;
  if (!isWhole || group === undefined || resource === undefined || kind === undefined || namespace === undefined || name === undefined)
    return undefined;
  if (shard === undefined || cluster === undefined) return undefined;
  return { resource: { group, resource, identity: kind === builtIn ? '' : kind }, shard, cluster, namespace, name };
}

function isOfCore([first = '', second = '', third = '']: readonly string[]): boolean {
  if (first.includes('.')) return false;
  return isKind(second) || !isKind(third);
}

function isKind(segment: string): boolean {
  return segment === builtIn || identityPattern.test(segment);
}
