/**
 * The keys and values that this engine keeps in etcd beside the objects. Pure.
 *
 *   PREFIX.strata/v1/…
 *     cache                                   which cache this is, and which life of it
 *     shards/SHARD                            who has the shard
 *     slices/SHARD/RESOURCE.GROUP:IDENTITY    how far the slice is synced
 *     links/parent, links/child/NAME          the cache at the other end, and the position up to
 *                                             which it has sent everything
 *     servers/ID, fences/ID, heartbeats/ID,   attached to the lease of a server (peers.ts)
 *     leader
 *     swept                                   put with a change to flag it: a walk's delete, a
 *                                             rewrite, or a change of kept names only
 *     rewrites/TYPE|CLUSTER|NAMESPACE/NAME    a mark: a namesake of a deleted object must be
 *                                             written again
 *     written/GROUP/RESOURCE/…                put with an object that the store writes again: the
 *                                             revision at which somebody else last wrote it; void
 *                                             once the object has another revision
 *
 * `.` sorts before `/`, so the range from PREFIX.strata/ to the end of PREFIX/ covers the records
 * and the objects. A watch of that range brings both in order of revision. Values are JSON. An
 * unreadable value counts as absent; the next write of its record replaces it.
 */
import type { ShardState } from '../../domain/claim.js';
import { parseClusterName } from '../../domain/cluster.js';
import { isObject, type Members } from '../../domain/base/members.js';
import type { LinkState } from '../../domain/push.js';
import { formatResource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import { parseShardName, type ShardName } from '../../domain/shard.js';
import type { PeerPusher, PeerState } from '../../domain/store-port.js';
import type { Slice } from '../../domain/slice.js';
import type { SliceFacts } from '../decide.js';
import { childNeighbour, childOf, type Neighbour, type Via } from '../../domain/via.js';

/** `epoch`: the latest life of the cache. */
export type CacheRecord = Readonly<{ cacheId: string; epoch: number }>;

/**
 * `viaSince`: the revision since which the shard has its via; 0: this record's. `session`: rises
 * with each pusher that connects, so that all transactions of former connections fail.
 */
export type ShardRecord = Readonly<Omit<ShardState, 'shard'> & { viaSince: Revision; session: number }>;

/**
 * The facts hold for the via that the shard had at this record's revision.
 *
 * - `invalidations`: rises whenever something voids the slice's syncs under way.
 * - `invalidatedBy`: the server that raised it last.
 * - `isVoid`: no sync has begun since.
 * - `removal`: the server that removes from the slice (removal-plans.ts); '' if none does.
 */
export type SliceRecord = Readonly<
  SliceFacts & { changedMs: number; invalidations: number; invalidatedBy: string; isVoid: boolean; removal: string }
>;

/**
 * `staleSince`: the revision before which no slice record of the link counts as current; 0: this
 * record's. `session`: rises whenever the link opens.
 */
export type LinkRecord = Readonly<Omit<LinkState, 'neighbour'> & { staleSince: Revision; session: number }>;

export type RecordKey = Readonly<
  | { kind: 'cache' | 'swept' }
  | { kind: 'shard'; shard: ShardName }
  | { kind: 'slice'; slice: Slice }
  | { kind: 'link'; neighbour: Neighbour }
  | { kind: 'server' | 'fence' | 'heartbeat'; id: string }
  | { kind: 'leader' }
  | { kind: 'rewrite' | 'written'; of: string }
>;

/** etcd accepts 128 operations in a transaction. */
export const recordsAtOnce = 50;

const resourcePattern = /^([^.:/]+)(?:\.([^:/]+))?:([^/]*)$/;

export function everyKey(prefix: string): Readonly<{ key: Uint8Array; rangeEnd: Uint8Array }> {
  return { key: Buffer.from(`${prefix}.strata/`), rangeEnd: Buffer.from(`${prefix}0`) };
}

/** Whether the key is a record of this engine or of a later version of it. */
export function isRecordKey(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}.strata/`);
}

function recordsPrefix(prefix: string): string {
  return `${prefix}.strata/v1/`;
}

export function formatRecordKey(prefix: string, key: RecordKey): string {
  return recordsPrefix(prefix) + placeOf(key);
}

/** Undefined for any other key, such as a record of a later version. */
export function parseRecordKey(prefix: string, text: string): RecordKey | undefined {
  const start = recordsPrefix(prefix);
  if (!text.startsWith(start)) return undefined;
  const place = text.slice(start.length);
  if (place === 'cache' || place === 'leader' || place === 'swept') return { kind: place };
  const cut = place.indexOf('/');
  const [folder, rest] = [place.slice(0, cut), place.slice(cut + 1)];
  if (folder === 'rewrites') return { kind: 'rewrite', of: rest };
  if (folder === 'written') return { kind: 'written', of: rest };
  if (folder === 'links') return parseLink(rest);
  if (folder === 'servers') return { kind: 'server', id: rest };
  if (folder === 'fences') return { kind: 'fence', id: rest };
  if (folder === 'heartbeats') return { kind: 'heartbeat', id: rest };
  const [name = '', type = ''] = folder === 'slices' ? rest.split('/') : [rest];
  const shard = parseShardName(name);
  if (shard === undefined) return undefined;
  if (folder === 'shards') return { kind: 'shard', shard };
  const [, resource, group = '', identity = ''] = resourcePattern.exec(type) ?? [];
  return folder === 'slices' && resource !== undefined
    ? { kind: 'slice', slice: { shard, resource: { group, resource, identity } } }
    : undefined;
}

/**
 * The scope of the objects that a rewrite mark stands for, one on each shard. Undefined if this
 * engine did not write the mark.
 */
export function namesakesOf(mark: string): Scope | undefined {
  const [type = '', cluster = '', ...rest] = mark.split('|');
  const [, resource, group = '', identity = ''] = resourcePattern.exec(type) ?? [];
  const place = rest.join('|');
  const cut = place.indexOf('/');
  const name = parseClusterName(cluster);
  if (resource === undefined || name === undefined || cut < 0) return undefined;
  return { group, resource, identity, shard: '*', cluster: name, namespace: place.slice(0, cut), name: place.slice(cut + 1) };
}

export function formatRecord(record: CacheRecord | ShardRecord | SliceRecord | LinkRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record));
}

export function formatServerRecord({ pushers, lastWrites }: PeerState): Uint8Array {
  const told = [...pushers].map(([shard, { lacks, ...pusher }]) => [
    shard,
    lacks === undefined ? pusher : { ...pusher, lacks: [...lacks] },
  ]);
  return Buffer.from(JSON.stringify({ pushers: Object.fromEntries(told), heard: Object.fromEntries(lastWrites) }));
}

export function parseServerRecord(value: Uint8Array): PeerState | undefined {
  const found = membersOf(value);
  if (found === undefined) return undefined;
  const { pushers, heard } = found;
  const shards = <T>(of: unknown, parse: (each: unknown) => T | undefined): ReadonlyMap<ShardName, T> =>
    new Map(
      Object.entries(isObject(of) ? of : {}).flatMap(([name, each]) => {
        const [shard, parsed] = [parseShardName(name), parse(each)];
        return shard === undefined || parsed === undefined ? [] : [[shard, parsed]];
      }),
    );
  return { pushers: shards(pushers, parsePeerPusher), lastWrites: shards(heard, (each) => (isNumber(each) ? each : undefined)) };
}

/** Undefined if the value cannot be parsed as the key's kind. */
export function parseRecord(key: RecordKey, value: Uint8Array): unknown {
  switch (key.kind) {
    case 'cache':
      return parseCacheRecord(value);
    case 'shard':
      return parseShardRecord(value);
    case 'slice':
      return parseSliceRecord(value);
    case 'link':
      return parseLinkRecord(value);
    case 'server':
      return parseServerRecord(value);
    case 'rewrite':
      return namesakesOf(key.of);
    case 'written':
      return parseWrittenRecord(value);
    default:
      return key;
  }
}

export function parseWrittenRecord(value: Uint8Array): Revision | undefined {
  const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString();
  return /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : undefined;
}

export function parseCacheRecord(value: Uint8Array): CacheRecord | undefined {
  const found = membersOf(value);
  if (!isText(found?.['cacheId']) || !isNumber(found['epoch'])) return undefined;
  return { cacheId: found['cacheId'], epoch: found['epoch'] };
}

export function parseShardRecord(value: Uint8Array): ShardRecord | undefined {
  const found = membersOf(value);
  if (found === undefined) return undefined;
  const { term, removed, origin, process, via, plain, viaSince, session } = found;
  if (!isNumber(term) || !isFlag(removed) || !isText(origin) || !isText(process) || !isFlag(plain)) return undefined;
  if (!isNumber(viaSince) || !isNumber(session) || !(via === undefined || isVia(via))) return undefined;
  return { term, removed, origin, process, via, plain, viaSince, session };
}

export function parseSliceRecord(value: Uint8Array): SliceRecord | undefined {
  const found = membersOf(value);
  if (found === undefined) return undefined;
  const { syncedTerm, everSynced, filterHash, cameOver, changedMs, invalidations, invalidatedBy, isVoid, removal } = found;
  if (!isText(invalidatedBy) || !isFlag(isVoid) || !isText(removal)) return undefined;
  if (!isNumber(syncedTerm) || !isFlag(everSynced) || !isText(filterHash) || !isNumber(changedMs) || !isNumber(invalidations))
    return undefined;
  if (cameOver !== '' && !isNeighbour(cameOver)) return undefined;
  return { syncedTerm, everSynced, filterHash, cameOver, changedMs, invalidations, invalidatedBy, isVoid, removal };
}

export function parseLinkRecord(value: Uint8Array): LinkRecord | undefined {
  const found = membersOf(value);
  if (found === undefined) return undefined;
  const { cacheId, position, staleSince, session } = found;
  if (!isText(cacheId) || !isText(position) || !isNumber(staleSince) || !isNumber(session)) return undefined;
  return { cacheId, position, staleSince, session };
}

function placeOf(key: RecordKey): string {
  switch (key.kind) {
    case 'shard':
      return `shards/${key.shard}`;
    case 'slice':
      return `slices/${key.slice.shard}/${formatResource(key.slice.resource)}`;
    case 'link':
      return `links/${key.neighbour}`;
    case 'server':
    case 'fence':
    case 'heartbeat':
      return `${key.kind}s/${key.id}`;
    case 'rewrite':
      return `rewrites/${key.of}`;
    case 'written':
      return `written/${key.of}`;
    default:
      return key.kind;
  }
}

function parseLink(text: string): RecordKey | undefined {
  const name = childOf(text);
  if (text !== 'parent' && (name === undefined || name === '')) return undefined;
  return { kind: 'link', neighbour: name === undefined ? 'parent' : childNeighbour(name) };
}

function membersOf(value: Uint8Array): Members | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString());
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

/** Older servers do not write `lacks`. An unreadable `lacks` counts as absent. */
function parsePeerPusher(value: unknown): PeerPusher | undefined {
  if (!isObject(value)) return undefined;
  const { peer, isHeld, connected, lagMs, whole, lacks } = value;
  if (!isText(peer) || !isFlag(isHeld) || !isFlag(connected) || !isNumber(lagMs) || !isFlag(whole)) return undefined;
  const isList = Array.isArray(lacks) && lacks.length > 0 && lacks.every(isText);
  return { peer, isHeld, connected, lagMs, whole, ...(isList && { lacks: new Set(lacks) }) };
}

function isVia(value: unknown): value is Via {
  return value === 'local' || isNeighbour(value);
}

function isNeighbour(value: unknown): value is Neighbour {
  return value === 'parent' || (isText(value) && childOf(value) !== undefined);
}
