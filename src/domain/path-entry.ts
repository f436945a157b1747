/**
 * What resolving a path needs of a LogicalCluster or a Workspace, and nothing else: entries, a few dozen bytes each, instead of objects of 2.5 kB. An
 * agent pushes them as slices of two types that no client sees, and a link lets them across only where a policy names the type.
 *
 *   logicalclusters.paths.strata   cluster C, name "cluster"   {"path":"root:org","parentless":true,"migrating":true}    what is not so is left out
 *   workspaces.paths.strata        cluster: the parent's       {"cluster":"2hkmx5l3ov9dd7vw","shard":"birch"} or {"url":"https://…"}, and "unavailable":true
 *
 * v1, first: an entry as above without "shard". Since then: "shard" of a Workspace; who does not know it does not read it.
 *
 * The parent has a Workspace, so the parent decides who has its names, and on which shard they are: what a logical cluster says of its owner counts for nothing.
 * Only one without an owner is found by the path that it gives itself.
 *
 * PATH-1 An entry is small and checked when it comes in, so that whoever reads it need not. Members that are not known here are kept and not read.
 * PATH-2 A logical cluster without an owner has the path of its entry, and is found by that. Any object may name a path (kcp.io/path), as the path of any
 *    logical cluster: beside such an entry it counts for nothing.
 */
import { parseAnyPath, parseCanonicalPath, parseClusterName, type CanonicalPath, type ClusterName } from './cluster.js';
import type { ServedType } from './catalogue.js';
import { badRequest, Refused } from './errors.js';
import { isObject, type Members } from './members.js';
import type { Body } from './object.js';
import { attempt, type Parsed } from './parsed.js';
import type { Resource } from './resource.js';
import { parseShardName, type ShardName } from './shard.js';

export type ClusterEntry = Readonly<{
  kind: 'cluster';
  /** Of one segment or more; undefined where kcp has not given it one yet. */
  path: string | undefined;
  isParentless: boolean;
  /** Whether it is about to leave this shard, or has not arrived yet. */
  isMigrating: boolean;
}>;

/** Where a logical cluster is, as its Workspace has it; `shard` is undefined where that does not say it. */
export type ClusterTarget = Readonly<{ cluster: ClusterName; shard: ShardName | undefined }>;

/** `target`: the logical cluster of the Workspace, or where a mounted one is served. */
export type WorkspaceEntry = Readonly<{
  kind: 'workspace';
  target: ClusterTarget | Readonly<{ url: string }>;
  isUnavailable: boolean;
}>;

export type PathEntry = ClusterEntry | WorkspaceEntry;

/** Of both types; no group of Kubernetes. */
export const pathGroup = 'paths.strata';
export const clusterEntries: Resource = { group: pathGroup, resource: 'logicalclusters', identity: '' };
export const workspaceEntries: Resource = { group: pathGroup, resource: 'workspaces', identity: '' };
/** As kcp names the one LogicalCluster of each logical cluster. */
export const clusterEntryName = 'cluster';
/** One version, because readers skip members that they do not know. */
export const pathEntryVersion = 'v1';

const entryBytesMax = 4 * 1024;
const urlCharactersMax = 2_048;
/** As kcp's Workspaces are named: a segment of a path. */
const workspaceName = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const workspaceNameCharactersMax = 63;
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** What the catalogue has of them: they are pushed, and never served. */
export const pathTypes: readonly ServedType[] = [typeOf(clusterEntries, 'LogicalCluster'), typeOf(workspaceEntries, 'Workspace')];

export function isClusterEntry({ group, resource }: Pick<Resource, 'group' | 'resource'>): boolean {
  return group === pathGroup && resource === clusterEntries.resource;
}

export function isPathType({ group }: Pick<Resource, 'group'>): boolean {
  return group === pathGroup;
}

/** The one text for an entry. */
export function formatPathEntry(entry: PathEntry): Uint8Array {
  return encoder.encode(JSON.stringify(membersOf(entry)));
}

/** What comes in as the entry of that name, from a pusher or a link: it may be anything. */
export function parsePathEntry({ resource }: Pick<Resource, 'resource'>, name: string, bytes: Uint8Array): Parsed<PathEntry> {
  return attempt(() => {
    if (bytes.length > entryBytesMax) throw wrong(`it has ${bytes.length} bytes, at most ${entryBytesMax} are taken`);
    const members = readMembers(bytes);
    if (resource === workspaceEntries.resource) {
      if (!isWorkspaceName(name)) throw wrong('its name is no segment of a path');
      return readWorkspace(members);
    }
    if (resource !== clusterEntries.resource) throw wrong(`there is no entry of the type ${resource}`);
    if (name !== clusterEntryName) throw wrong(`that of a logical cluster is named ${clusterEntryName}`);
    return readCluster(members);
  });
}

/** What is stored of an entry. It is all there is of it, so it stands where an object has its metadata: it has neither labels nor annotations. */
export function pathEntryBody(bytes: Uint8Array): Body {
  return { bytes, version: pathEntryVersion, marks: { metadataStart: 0, metadataEnd: bytes.length, annotationsAt: 0, revisionAt: 0 } };
}

/** The path that the logical cluster of the entry owns (PATH-2). */
export function pathOfEntry(entry: PathEntry): CanonicalPath | undefined {
  return entry.kind === 'cluster' && entry.isParentless && entry.path !== undefined ? parseCanonicalPath(entry.path) : undefined;
}

function typeOf(resource: Resource, kind: string): ServedType {
  return {
    ...resource,
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: false,
    nameRule: 'subdomain',
    strategicMerge: false,
    versions: [{ name: pathEntryVersion, columns: [] }],
    storageVersion: pathEntryVersion,
  };
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
    throw wrong('it is no JSON');
  }
  if (!isObject(value)) throw wrong('it is no object');
  return value;
}

function readCluster(members: Members): ClusterEntry {
  const path = textIn(members, 'path');
  if (path !== undefined && parseAnyPath(path) === undefined) throw wrong('its path is no canonical path');
  return { kind: 'cluster', path, isParentless: truthIn(members, 'parentless'), isMigrating: truthIn(members, 'migrating') };
}

function readWorkspace(members: Members): WorkspaceEntry {
  const [cluster, url, shardText] = ['cluster', 'url', 'shard'].map((name) => textIn(members, name));
  const isUnavailable = truthIn(members, 'unavailable');
  if ((cluster === undefined) === (url === undefined)) throw wrong('it leads to a logical cluster or to a URL, to one of both');
  if (url !== undefined) {
    if (!isMountUrl(url)) throw wrong('its url must be https, without credentials, query or fragment');
    return { kind: 'workspace', target: { url }, isUnavailable };
  }
  const parsed = parseClusterName(cluster ?? '');
  if (parsed === undefined || parsed.startsWith('system:')) throw wrong('its cluster is no logical cluster that a Workspace can have');
  const shard = shardText === undefined ? undefined : parseShardName(shardText);
  if (shardText !== undefined && shard === undefined) throw wrong('its shard is no name of a shard');
  return { kind: 'workspace', target: { cluster: parsed, shard }, isUnavailable };
}

/** Whether requests may be sent there in the name of callers. */
function isMountUrl(text: string): boolean {
  if (text.length > urlCharactersMax || !URL.canParse(text)) return false;
  const { protocol, username, password, search, hash, href } = new URL(text);
  const isPlain = [username, password, search, hash].every((part) => part === '');
  // Others must not read another URL in it.
  return protocol === 'https:' && isPlain && [text, `${text}/`].includes(href);
}

function isWorkspaceName(name: string): boolean {
  return name.length <= workspaceNameCharactersMax && workspaceName.test(name);
}

function textIn(members: Members, name: string): string | undefined {
  const value = members[name];
  if (value !== undefined && typeof value !== 'string') throw wrong(`its ${name} is no text`);
  return value;
}

function truthIn(members: Members, name: string): boolean {
  const value = members[name];
  if (value !== undefined && typeof value !== 'boolean') throw wrong(`its ${name} is neither true nor false`);
  return value === true;
}

function wrong(message: string): Refused {
  return new Refused(badRequest(`no path entry: ${message}`));
}
