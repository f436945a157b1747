/**
 * Whom RBAC lets read a view of an APIExport, besides masters (`--view-callers=rbac`). kcp
 * replicates the ClusterRoles and ClusterRoleBindings that this needs. kcp makes the same checks
 * for its view:
 *
 *   the LogicalCluster serves content, and requires no   ┐ by the objects in the export's logical
 *   group that the caller is not in                      │ cluster, on the one shard that has
 *   verb=access on /                                     │ the export
 *   the request's verb on apiexports/content, by name    ┘
 *
 * kcp does not replicate `system:admin`, so bindings in that logical cluster, such as
 * cluster-admin, admit nobody here.
 *
 * VIEW-3 A caller that RBAC admits sees only the objects in the export's own logical cluster, on
 *    that cluster's shard. The writer of an APIExport chooses the identity that it exports, and
 *    might choose another's. The objects that kcp caches for an export are in that logical cluster.
 * VIEW-4 A right that may have been revoked admits nobody. If a deciding type was not current on
 *    the shard before the reading, the answer is 503. Everything is read at one revision, so rights
 *    of different times never combine.
 * VIEW-5 RBAC admits only callers whose certificates allow nothing else. A caller that is not
 *    admitted gets the same answer whether or not the export exists.
 *
 * Cost: one request reads at most `readBytesMax` of ClusterRoleBindings and ClusterRoles; if there
 * is more, nobody is admitted. All requests together read `turnBytesMax` in a turn of the event
 * loop.
 */
import { setImmediate } from 'node:timers';
import { anonymous, kindOf, withAuthenticated, type Caller } from '../../domain/caller.js';
import { logicalClusterType } from '../../domain/cluster.js';
import { Refused } from '../../domain/errors.js';
import { Pace } from '../../domain/base/pace.js';
import type { Freshness } from '../../domain/ports.js';
import type { Objects, Revisions } from '../../domain/store-port.js';
import { formatGroupResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { ClusterOnShard } from '../kube/call.js';
import type { Verb } from '../kube/kube-request.js';
import { admits, roleAllows, roleGiven, type Action, type Subject } from './rbac.js';
import { exportType } from '../discovery/resource-schema.js';
import type { ViewPath } from './view-path.js';

export type ViewCallersParts = Readonly<{
  objects: Pick<Objects, 'find' | 'snapshot'>;
  revisions: Pick<Revisions, 'published' | 'reachNewest'>;
  freshness: Pick<Freshness, 'ofType'>;
}>;

const roles: Resource = { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', identity: '' };
const bindings: Resource = { ...roles, resource: 'clusterrolebindings' };
const deciding: readonly Resource[] = [roles, bindings, logicalClusterType, exportType];
const serviceAccount = 'system:serviceaccount:';
const readBytesMax = 256 * 1024;
const turnBytesMax = 64 * 1024;
/** The maximum age of the oldest change that the shard's pusher has not stored here. */
const lagMsMax = 10_000;

export class ViewCallers {
  readonly #parts: ViewCallersParts;
  readonly #pace = new Pace(turnBytesMax, setImmediate);

  constructor(parts: ViewCallersParts) {
    this.#parts = parts;
  }

  /**
   * The part of the view that the caller may read; undefined if none. Throws Refused(503) if this
   * is uncertain.
   */
  async admitted(caller: Caller, view: ViewPath, verb: Verb): Promise<ClusterOnShard | undefined> {
    if (view.kind !== 'apiexport' || !mayBeAdmitted(caller)) return undefined;
    const { objects, revisions } = this.#parts;
    await revisions.reachNewest();
    const found = await objects.find({ ...exportType, shard: '*', cluster: view.cluster, namespace: '', name: view.name });
    const [only] = found;
    if (only === undefined || found.length > 1) return undefined;
    const place: ClusterOnShard = { shard: only.key.shard, cluster: view.cluster };
    // Check this before the reading: a later check would also count changes that arrived after it.
    const stale = await this.#stale(place.shard);
    const subject: Subject = { user: caller.user, groups: withAuthenticated(caller.user, caller.groups) };
    const content: Action = { verb, group: exportType.group, resource: exportType.resource, subresource: 'content', name: view.name };
    const at = new RbacAt(this.#parts, { place, subject, revision: revisions.published, pace: this.#pace });
    if (!(await at.mayEnter()) || !(await at.allows([{ verb: 'access', path: '/' }, content]))) return undefined;
    if (stale === undefined) return place;
    throw new Refused({
      reason: 'ServiceUnavailable',
      message: `the cache cannot decide who may use this view: its ${formatGroupResource(stale)} of the shard ${place.shard} are not current`,
      details: { retryAfterSeconds: 1 },
    });
  }

  /**
   * Returns a deciding type that is not current. A plain HTTP writer reports no lag, so its objects
   * count as current, although the shard may have newer changes.
   */
  async #stale(shard: ShardName): Promise<Resource | undefined> {
    for (const { group, resource, identity } of deciding) {
      const { shards } = await this.#parts.freshness.ofType({ group, resource, identity, shard });
      const isCurrent = shards.every(
        ({ whole, connection, sourceConnected, lagMs }) =>
          whole && connection.kind !== 'away' && sourceConnected !== false && (lagMs ?? 0) <= lagMsMax,
      );
      if (shards.length === 0 || !isCurrent) return { group, resource, identity };
    }
    return undefined;
  }
}

/**
 * Kubernetes counts a user in the groups of `anonymous` as not authenticated. A service account
 * belongs to one logical cluster, which a certificate does not name.
 */
function mayBeAdmitted(caller: Caller): boolean {
  const { user, groups } = caller;
  return (
    kindOf(caller) === 'other' &&
    user !== anonymous.user &&
    !anonymous.groups.some((group) => groups.includes(group)) &&
    !user.startsWith(serviceAccount)
  );
}

type RbacAtParts = Readonly<{ place: ClusterOnShard; subject: Subject; revision: Revision; pace: Pace }>;

/**
 * The rights of a subject in a logical cluster of a shard, at one revision. Reads no more than
 * needed.
 */
class RbacAt {
  readonly #objects: ViewCallersParts['objects'];
  readonly #parts: RbacAtParts;
  #readBytes = 0;
  #turnBytes = 0;

  constructor({ objects }: ViewCallersParts, parts: RbacAtParts) {
    this.#objects = objects;
    this.#parts = parts;
  }

  async mayEnter(): Promise<boolean> {
    const { groups } = this.#parts.subject;
    for await (const body of this.#read(logicalClusterType, 'cluster')) return admits(body, groups);
    return false;
  }

  async allows(actions: readonly Action[]): Promise<boolean> {
    const given = new Set<string>();
    for await (const body of this.#read(bindings)) {
      const name = roleGiven(body, this.#parts.subject);
      if (name !== undefined) given.add(name);
    }
    const left = new Set(actions);
    for (const name of given)
      for await (const body of this.#read(roles, name)) {
        for (const action of left) if (roleAllows(body, action)) left.delete(action);
        if (left.size === 0) return true;
      }
    return false;
  }

  /** Ends early beyond `readBytesMax`, after which nothing more is allowed. */
  async *#read(type: Resource, name?: string): AsyncGenerator<Uint8Array> {
    const { place, revision, pace } = this.#parts;
    for await (const page of snapshotPages(this.#objects.snapshot({ ...type, ...place, name }, revision)))
      for (const { body } of page) {
        this.#readBytes += body.bytes.length;
        this.#turnBytes += body.bytes.length;
        if (this.#readBytes > readBytesMax) return;
        yield body.bytes;
        if (this.#turnBytes <= turnBytesMax / 4) continue;
        await pace.turn(this.#turnBytes);
        this.#turnBytes = 0;
      }
  }
}
