/**
 * Converts a shard's LogicalClusters and Workspaces to path entries, by the rules of kcp's own
 * proxy (pkg/index of August 2026). An entry stays until its object is gone, because a Workspace
 * that is being deleted still leads to its logical cluster.
 *
 * A change that does not alter the entry is pushed all the same. To detect such a change, the agent
 * would have to keep every entry, and the cache compares entries anyway.
 */
import { pathAnnotation, parseAnyPath } from '../domain/cluster.js';
import { isObject, membersOf, type Members } from '../domain/base/members.js';
import {
  clusterEntries,
  formatPathEntry,
  parsePathEntry,
  pathEntryVersion,
  workspaceEntries,
  type PathEntry,
} from '../domain/path-entry.js';
import type { ClusterName } from '../domain/cluster.js';
import type { Resource } from '../domain/resource.js';
import { parseShardName } from '../domain/shard.js';
import { memberText, memberValue, type ObjectText } from '../json/object-text.js';
import type { Collection } from '../kube/collection.js';
import type { SourceObject } from '../kube/source-object.js';
import type { PushedForm } from './slice-reader.js';

/** One type: the collection to read, and the form in which its objects are pushed. */
export type PathEntryForm = Readonly<{ resource: Resource; collection: Collection; form: PushedForm }>;

const everywhere = { cluster: '*', version: 'v1alpha1', labelSelector: '' };
const migratingAnnotation = 'internal.kcp.io/migrating';
/**
 * The shard of a Workspace's logical cluster. kcp writes it when it schedules the Workspace, or
 * when the logical cluster migrates. Nobody else may write it.
 */
const shardAnnotation = 'core.kcp.io/shard';

export const pathEntryForms: readonly PathEntryForm[] = [
  {
    resource: clusterEntries,
    collection: { ...everywhere, group: 'core.kcp.io', resource: 'logicalclusters', identityOf: undefined },
    form: formOf(clusterEntries, clusterEntryOf),
  },
  {
    resource: workspaceEntries,
    collection: { ...everywhere, group: 'tenancy.kcp.io', resource: 'workspaces', identityOf: 'tenancy.kcp.io' },
    form: formOf(workspaceEntries, workspaceEntryOf),
  },
];

function formOf(resource: Resource, entryOf: (object: SourceObject) => PathEntry | undefined): PushedForm {
  /**
   * Undefined if the object has no entry: a Workspace that is not scheduled yet or leads nowhere,
   * or one that no path can name.
   */
  const bytesOf = (object: SourceObject): Uint8Array | undefined => {
    const entry = entryOf(object);
    if (entry === undefined) return undefined;
    const bytes = formatPathEntry(entry);
    return parsePathEntry(resource, object.name, bytes).kind === 'parsed' ? bytes : undefined;
  };
  return {
    version: pathEntryVersion,
    select: (object) => {
      if (object.cluster.startsWith('system:')) return 'ignored';
      const bytes = bytesOf(object);
      return bytes === undefined ? 'gone' : () => bytes;
    },
  };
}

function clusterEntryOf({ text }: SourceObject): PathEntry {
  const path = memberText(text.bytes, text.annotations, pathAnnotation);
  return {
    kind: 'cluster',
    path: path === undefined ? undefined : parseAnyPath(path),
    isParentless: !isObject(membersIn(text, 'spec')['owner']),
    isMigrating: (memberText(text.bytes, text.annotations, migratingAnnotation) ?? '') !== '',
  };
}

/** A mounted Workspace leads to its URL only while it has no logical cluster of its own. */
function workspaceEntryOf({ text }: SourceObject): PathEntry | undefined {
  const spec = membersIn(text, 'spec');
  const { phase } = membersIn(text, 'status');
  if (phase === 'Scheduling') return undefined;
  const isUnavailable = phase === 'Unavailable';
  const { cluster, URL: url } = spec;
  if (typeof cluster === 'string' && cluster !== '') {
    const shard = parseShardName(memberText(text.bytes, text.annotations, shardAnnotation) ?? '');
    return { kind: 'workspace', target: { cluster: cluster as ClusterName, shard }, isUnavailable };
  }
  if (!isObject(spec['mount']) || typeof url !== 'string' || url === '') return undefined;
  return { kind: 'workspace', target: { url }, isUnavailable };
}

function membersIn({ bytes, top }: ObjectText, name: string): Members {
  return membersOf(memberValue(bytes, top, name));
}
