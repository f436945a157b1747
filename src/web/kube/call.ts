import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Catalogue, ServedType } from '../../domain/catalogue/catalogue.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { badRequest, expired, Refused, type Refusal } from '../../domain/errors.js';
import type { Commit } from '../../domain/change.js';
import { formatClientKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { mustParse } from '../../domain/parsed.js';
import type { Clock, HeavyWork, HeavyWorks, Intake, Snapshots, Watches } from '../../domain/ports.js';
import type { RecentChanges } from '../../domain/recent-changes.js';
import type { Revision } from '../../domain/revision.js';
import type { CanonicalPaths, Commits, History, Objects, Revisions } from '../../domain/store-port.js';
import type { Scope } from '../../domain/scope.js';
import type { Selector } from '../../domain/syntax/selector.js';
import type { ShardName } from '../../domain/shard.js';
import type { Exchange } from '../../http/exchange.js';
import { negotiate, type Answered, type AnswerShape } from '../formats/accept.js';
import type { RequestedCluster } from './kube-path.js';
import { objectNotFound, resourceNotFound, wildcardWrite, type ResourcePath, type Verb } from './kube-request.js';
import type { Gzip } from '../formats/gzip.js';
import { partialForm, tableForm, fullForm, type ObjectForm } from '../formats/object-form.js';
import type { Part } from '../formats/parts.js';
import type { RootSchemas } from '../discovery/root-schemas.js';
import { parseIncludeObject } from '../formats/table.js';
import type { ViewCallers } from '../views/view-callers.js';

export type Call = Readonly<{
  verb: Verb;
  path: ResourcePath;
  type: ServedType;
  /** '*': all identities, for a list of PartialObjectMetadata in all logical clusters. */
  identity: string;
  shard: ShardName | '*';
  cluster: ClusterName | '*';
  /** Labels that every object of the view has; empty without a view. */
  labels: Selector['labels'];
  bound: Bound;
  query: URLSearchParams;
  request: IncomingMessage;
  exchange: Exchange;
  /** The caller's share of the heavy work. */
  heavy: HeavyWork;
}>;

/**
 * The reads that decided which objects the URL means.
 * - `at`: the revision published just before these reads.
 * - `path`: the canonical path of the cluster, if the URL has one.
 * - `shownBy`: the object that decides which objects a view shows.
 * - `declaredBy`: the logical cluster whose ClusterCachedResource decides the identity, if the URL
 *   names none.
 */
export type Bound = Readonly<{
  at: Revision;
  path: CanonicalPath | undefined;
  shownBy: StoredObject | undefined;
  declaredBy: ClusterName | undefined;
}>;

export type KubePorts = Readonly<{
  objects: Objects;
  history: History;
  revisions: Revisions;
  intake: Intake;
  commits: Commits;
  paths: CanonicalPaths;
  movedPaths: Pick<RecentChanges, 'hasChangedSince'>;
  snapshots: Snapshots;
  watches: Watches;
  catalogue: Catalogue;
  heavy: HeavyWorks;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  schemas: RootSchemas;
  /** Undefined if only masters may read views. */
  viewCallers: ViewCallers | undefined;
  gzip: Gzip;
  limits: KubeLimits;
}>;

export type KubeLimits = Readonly<{
  bodyBytesMax: number;
  selectorBytesMax: number;
  watchTimeoutMinMs: number;
  watchTimeoutMaxMs: number;
  /** The longest piece of a list: a chunk whose last object is as large as possible. */
  pieceBytesMax: number;
}>;

/** A verb returns bytes to send, or has written to the response already. */
export type Answer =
  | Readonly<{ kind: 'bytes'; code: number; contentType: string; parts: readonly Part[]; warnings?: readonly string[] }>
  | Readonly<{ kind: 'streamed' }>;

/** Whether the URL may mean other objects than it did at `revision`. */
export function hasMeaningChangedSince(
  revision: Revision,
  { bound: { path, shownBy, declaredBy }, type }: Pick<Call, 'bound' | 'type'>,
  { movedPaths, catalogue }: Pick<KubePorts, 'movedPaths' | 'catalogue'>,
): boolean {
  return (
    revision < (shownBy?.revision ?? 0) ||
    (path !== undefined && movedPaths.hasChangedSince(path, revision)) ||
    (declaredBy !== undefined && catalogue.hasIdentityChangedSince({ ...type, cluster: declaredBy }, revision))
  );
}

/**
 * Whether the URL may mean other objects from this commit on. The catalogue has already applied the
 * commit.
 */
export function changesMeaning(
  { movedPaths, changes, revision }: Commit,
  { bound: { path, shownBy, declaredBy }, type }: Pick<Call, 'bound' | 'type'>,
  catalogue: Catalogue,
): boolean {
  return (
    (path !== undefined && movedPaths.includes(path)) ||
    (declaredBy !== undefined && catalogue.hasIdentityChangedSince({ ...type, cluster: declaredBy }, revision - 1)) ||
    (shownBy !== undefined &&
      changes.some(({ key }) => key.name === shownBy.key.name && formatClientKey(key) === formatClientKey(shownBy.key)))
  );
}

export function meaningChanged(): Refusal {
  return expired('what this URL leads to has changed, please list again');
}

/** How many candidates a conflict names. */
export const candidatesNamedMax = 10;

export type ClusterOnShard = Readonly<{ shard: ShardName; cluster: ClusterName }>;

/**
 * The logical cluster of a read. Throws Refused: 404 if no logical cluster has the canonical path,
 * 409 if several have it.
 */
export async function clusterOf(cluster: RequestedCluster, paths: CanonicalPaths): Promise<ClusterName | '*'> {
  if (cluster.kind === 'all') return '*';
  if (cluster.kind === 'name') return cluster.name;
  const [only, ...others] = await paths.clustersAt(cluster.path);
  if (only === undefined)
    throw new Refused({ reason: 'NotFound', message: `no logical cluster has the canonical path ${JSON.stringify(cluster.path)}` });
  if (others.length === 0) return only;
  const named = [only, ...others.slice(0, candidatesNamedMax - 1)].join(', ');
  const more = others.length < candidatesNamedMax ? '' : ' and others';
  throw new Refused({
    reason: 'Conflict',
    message: `the canonical path ${JSON.stringify(cluster.path)} leads to several logical clusters: ${named}${more}`,
  });
}

/**
 * The logical cluster of a write. The URL must give its name; a path or '*' throws Refused(400).
 */
export function writtenCluster(cluster: RequestedCluster): ClusterName {
  if (cluster.kind === 'all') throw new Refused(wildcardWrite('cluster'));
  if (cluster.kind === 'path')
    throw new Refused(badRequest(`invalid cluster: ${JSON.stringify(cluster.path)} is not a logical cluster name`));
  return cluster.name;
}

/** The logical cluster of a write, and its shard. `writtenCluster` has checked it before. */
export function writeTargetOf({ shard, cluster }: Call): ClusterOnShard {
  if (shard === '*') throw new Refused(wildcardWrite('shard'));
  if (cluster === '*') throw new Refused(wildcardWrite('cluster'));
  return { shard, cluster };
}

/** The key of a write on one object. Throws Refused: 400 for wildcards, 404 for the wrong scope. */
export function keyOf(call: Call): Key {
  const { type, path, identity } = call;
  const place = writeTargetOf(call);
  return {
    resource: { group: type.group, resource: type.resource, identity },
    ...place,
    namespace: namespaceOf(call),
    name: path.name ?? '',
  };
}

/**
 * The namespace of a call on one object; '' for a cluster-scoped type. Throws Refused(404) if type
 * and path disagree.
 */
export function namespaceOf({ type, path }: Call): string {
  if (type.namespaced === (path.namespace !== undefined)) return path.namespace ?? '';
  throw new Refused(objectNotFound(path, path.name ?? ''));
}

/**
 * The scope and the selector of a list, a watch or a delete of a collection. A term of the selector
 * for one name or namespace moves into the scope, where it is cheaper. Throws Refused: 404 if type
 * and path disagree, 400 if the selector names another object than the path, or a namespace for a
 * cluster-scoped type.
 */
export function narrow(call: Call, selector: Selector): { scope: Scope; selector: Selector } {
  const { verb, type, identity, shard, cluster, path } = call;
  // A list or a watch may cover all namespaces; the delete of a collection may not.
  const isMisplaced = type.namespaced ? verb === 'deletecollection' && path.namespace === undefined : path.namespace !== undefined;
  if (isMisplaced) throw new Refused(resourceNotFound(path));
  if (!type.namespaced && selector.fields.some(({ field }) => field === 'metadata.namespace'))
    throw new Refused(badRequest('field label not supported: metadata.namespace'));
  const named = (field: 'metadata.name' | 'metadata.namespace') =>
    selector.fields.find((term) => term.field === field && term.kind === 'is');
  const name = named('metadata.name');
  const namespace = named('metadata.namespace');
  if (path.name !== undefined && name !== undefined && name.value !== path.name) {
    throw new Refused(badRequest(`fieldSelector metadata.name=${name.value} does not match the name in the URL`));
  }
  const scope: Scope = {
    group: type.group,
    resource: type.resource,
    identity,
    shard,
    cluster,
    namespace: path.namespace ?? namespace?.value,
    name: path.name ?? name?.value,
  };
  const labels = [...call.labels, ...selector.labels];
  const folded = [name, path.namespace === undefined ? namespace : undefined];
  return { scope, selector: { labels, fields: selector.fields.filter((term) => !folded.includes(term)) } };
}

export function answeredAs({ request }: Call, asked: AnswerShape): Answered {
  return mustParse(negotiate(request.headers.accept, asked));
}

/** The form of the answer. Throws Refused(400) for an unknown `includeObject`. */
export function formOf({ type, path, query, shard, cluster }: Call, { form, tableVersion }: Answered, clock: Clock): ObjectForm {
  const open = { shard: shard === '*', cluster: cluster === '*' };
  switch (form) {
    case 'object':
      return fullForm(type, path.version);
    case 'partial':
      return partialForm(type, path.version, open.cluster);
    case 'table': {
      const includeObject = parseIncludeObject(query.get('includeObject') ?? undefined);
      if (includeObject === undefined)
        throw new Refused(badRequest(`unrecognized includeObject value: ${JSON.stringify(query.get('includeObject'))}`));
      return tableForm(type, path.version, { id: randomUUID(), tableVersion, includeObject, open, now: () => clock.wallMs() });
    }
  }
}
