/**
 * The keys of objects in etcd, in the layout of kcp's own cache server. Pure.
 *
 *   PREFIX/GROUP/RESOURCE/customresources/SHARD/CLUSTER/[NAMESPACE/]NAME    a built-in type
 *   PREFIX/GROUP/RESOURCE/IDENTITY/SHARD/CLUSTER/[NAMESPACE/]NAME           a declared type
 *   PREFIX/RESOURCE/IDENTITY/SHARD/CLUSTER/[NAMESPACE/]NAME                 of the core group
 *
 * Six segments are ambiguous: a named group without a namespace, or the core group with a
 * namespace. A first segment with a dot is a group, because no resource's name has a dot. Otherwise
 * the position of the identity decides: no resource and no shard can have a name of 64 hexadecimal
 * digits.
 *
 * kcp's cache server keeps its own definitions below PREFIX/apiextensions.k8s.io. None of them is
 * an object here.
 */
import { isUtf8 } from 'node:buffer';
import { parseClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import { parseShardName } from '../../domain/shard.js';

const builtIn = 'customresources';
const ownGroup = 'apiextensions.k8s.io';
const identityPattern = /^[0-9a-f]{64}$/;
/**
 * Only rejects segments that would not be written back as the same key. Other modules validate
 * names and namespaces.
 */
const segmentPattern = /^[^/]+$/;

/** A key that is not UTF-8 becomes a text that no key of this engine has. */
export function keyText(key: Uint8Array): string {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return isUtf8(bytes) ? bytes.toString() : `binary ${bytes.toString('hex')}`;
}

export function formatObjectKey(prefix: string, { resource: { group, resource, identity }, shard, cluster, namespace, name }: Key): string {
  const type = group === '' ? [resource] : [group, resource];
  const place = namespace === '' ? [cluster] : [cluster, namespace];
  return [prefix, ...type, identity === '' ? builtIn : identity, shard, ...place, name].join('/');
}

/** Whether kcp's cache server keeps the key for itself. */
export function isOfUpstream(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}/${ownGroup}/`);
}

/** Undefined if the text is not the key of an object. */
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
