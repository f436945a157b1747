/**
 * Path entries: the members of a LogicalCluster or Workspace that path resolution needs, a few
 * dozen bytes instead of an object of 2.5 kB. Agents push them as slices of two types that no
 * client sees. A link passes them only if a policy names their type.
 *
 *  logicalclusters.paths.strata   in cluster C, name "cluster"; members that are false are left out
 *      {"path":"root:org","parentless":true,"migrating":true}
 *  workspaces.paths.strata        in the parent's cluster; if unavailable, with "unavailable":true
 *      {"cluster":"2hkmx5l3ov9dd7vw","shard":"birch"} or {"url":"https://…"}
 *
 * The first v1 had no "shard" of a Workspace. A reader of that v1 ignores it.
 *
 * A Workspace is in the parent logical cluster. So the parent decides to which logical cluster a
 * name leads, and on which shard that cluster is. The owner that a LogicalCluster names is ignored:
 * its entry says only whether it has an owner.
 *
 * PATH-1 An entry is small and validated on arrival, so that readers need no checks. Unknown
 *    members are kept and ignored.
 * PATH-2 A logical cluster without an owner has its path in its entry, and is found by that path.
 *    Any object may name a path for any logical cluster (kcp.io/path). If the logical cluster has
 *    such an entry, that annotation is ignored.
 */
import { parseAnyPath, parseCanonicalPath, parseClusterName, type CanonicalPath, type ClusterName } from './cluster.js';
import { plainType, type ServedType } from './catalogue/catalogue.js';
import { badRequest, Refused } from './errors.js';
import { isObject, type Members } from './base/members.js';
import type { Body } from './object.js';
import { attempt, type Parsed } from './parsed.js';
import type { Resource } from './resource.js';
import { parseShardName, type ShardName } from './shard.js';

export type ClusterEntry = Readonly<{
  kind: 'cluster';
  /** One segment or more; undefined until kcp has assigned the path. */
  path: string | undefined;
  isParentless: boolean;
  /** Whether the logical cluster is about to leave this shard, or has not arrived there yet. */
  isMigrating: boolean;
}>;

/**
 * Where a logical cluster is, according to its Workspace; `shard` is undefined if the Workspace
 * does not say.
 */
export type ClusterTarget = Readonly<{ cluster: ClusterName; shard: ShardName | undefined }>;

/**
 * `target`: the logical cluster of the Workspace, or the URL at which a mounted Workspace is
 * served.
 */
export type WorkspaceEntry = Readonly<{
  kind: 'workspace';
  target: ClusterTarget | Readonly<{ url: string }>;
  isUnavailable: boolean;
}>;

export type PathEntry = ClusterEntry | WorkspaceEntry;

/** The group of both types; no Kubernetes API uses it. */
export const pathGroup = 'paths.strata';
export const clusterEntries: Resource = { group: pathGroup, resource: 'logicalclusters', identity: '' };
export const workspaceEntries: Resource = { group: pathGroup, resource: 'workspaces', identity: '' };
/** kcp gives the one LogicalCluster of each logical cluster this name. */
export const clusterEntryName = 'cluster';
/** One version is enough, because readers ignore unknown members. */
export const pathEntryVersion = 'v1';

const entryBytesMax = 4 * 1024;
const urlCharactersMax = 2_048;
/** kcp's rule for the names of Workspaces: a segment of a path. */
const workspaceName = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const workspaceNameCharactersMax = 63;
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** These types are pushed and never served. */
export const pathTypes: readonly ServedType[] = [
  plainType(clusterEntries, 'LogicalCluster', [pathEntryVersion]),
  plainType(workspaceEntries, 'Workspace', [pathEntryVersion]),
];

export function isClusterEntry({ group, resource }: Pick<Resource, 'group' | 'resource'>): boolean {
  return group === pathGroup && resource === clusterEntries.resource;
}

export function isPathType({ group }: Pick<Resource, 'group'>): boolean {
  return group === pathGroup;
}

export function formatPathEntry(entry: PathEntry): Uint8Array {
  return encoder.encode(JSON.stringify(membersOf(entry)));
}

/** The bytes are untrusted: a pusher or a link sent them. */
export function parsePathEntry({ resource }: Pick<Resource, 'resource'>, name: string, bytes: Uint8Array): Parsed<PathEntry> {
  return attempt(() => {
    if (bytes.length > entryBytesMax) throw wrong(`it has ${bytes.length} bytes; at most ${entryBytesMax} are accepted`);
    const members = readMembers(bytes);
    if (resource === workspaceEntries.resource) {
      if (name.length > workspaceNameCharactersMax || !workspaceName.test(name)) throw wrong('its name is not a segment of a path');
      return readWorkspace(members);
    }
    if (resource !== clusterEntries.resource) throw wrong(`there is no entry of the type ${resource}`);
    if (name !== clusterEntryName) throw wrong(`the entry of a logical cluster must be named ${clusterEntryName}`);
    return readCluster(members);
  });
}

/**
 * The stored body of an entry. Its metadata offsets span all of it; an entry has neither labels nor
 * annotations.
 */
export function pathEntryBody(bytes: Uint8Array): Body {
  return { bytes, version: pathEntryVersion, marks: { metadataStart: 0, metadataEnd: bytes.length, annotationsAt: 0, revisionAt: 0 } };
}

/** The path that the entry's logical cluster owns (PATH-2). */
export function pathOfEntry(entry: PathEntry): CanonicalPath | undefined {
  return entry.kind === 'cluster' && entry.isParentless && entry.path !== undefined ? parseCanonicalPath(entry.path) : undefined;
}

function membersOf(entry: PathEntry): Members {
  if (entry.kind === 'workspace') return { ...entry.target, ...(entry.isUnavailable && { unavailable: true }) };
  const { path, isParentless, isMigrating } = entry;
  return { ...(path !== undefined && { path }), ...(isParentless && { parentless: true }), ...(isMigrating && { migrating: true }) };
}

function readMembers(bytes: Uint8Array): Members {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    throw wrong('it is not JSON');
  }
  if (!isObject(value)) throw wrong('it is not a JSON object');
  return value;
}

function readCluster(members: Members): ClusterEntry {
  const path = textIn(members, 'path');
  if (path !== undefined && parseAnyPath(path) === undefined) throw wrong('its path is not a canonical path');
  return { kind: 'cluster', path, isParentless: truthIn(members, 'parentless'), isMigrating: truthIn(members, 'migrating') };
}

function readWorkspace(members: Members): WorkspaceEntry {
  const [cluster, url, shardText] = ['cluster', 'url', 'shard'].map((name) => textIn(members, name));
  const isUnavailable = truthIn(members, 'unavailable');
  if ((cluster === undefined) === (url === undefined)) throw wrong('it must have either a cluster or a url');
  if (url !== undefined) {
    if (!isMountUrl(url)) throw wrong('its url must be https, without credentials, query or fragment');
    return { kind: 'workspace', target: { url }, isUnavailable };
  }
  const parsed = parseClusterName(cluster ?? '');
  if (parsed === undefined || parsed.startsWith('system:'))
    throw wrong('its cluster is not the name of a logical cluster that a Workspace can have');
  const shard = shardText === undefined ? undefined : parseShardName(shardText);
  if (shardText !== undefined && shard === undefined) throw wrong('its shard is not the name of a shard');
  return { kind: 'workspace', target: { cluster: parsed, shard }, isUnavailable };
}

function isMountUrl(text: string): boolean {
  if (text.length > urlCharactersMax || !URL.canParse(text)) return false;
  const { protocol, username, password, search, hash, href } = new URL(text);
  const isPlain = [username, password, search, hash].every((part) => part === '');
  // Rejects a URL that another parser might read differently.
  return protocol === 'https:' && isPlain && [text, `${text}/`].includes(href);
}

function textIn(members: Members, name: string): string | undefined {
  const value = members[name];
  if (value !== undefined && typeof value !== 'string') throw wrong(`its ${name} is not a string`);
  return value;
}

function truthIn(members: Members, name: string): boolean {
  const value = members[name];
  if (value !== undefined && typeof value !== 'boolean') throw wrong(`its ${name} is neither true nor false`);
  return value === true;
}

function wrong(message: string): Refused {
  return new Refused(badRequest(`not a path entry: ${message}`));
}
