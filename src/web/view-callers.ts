/**
 * Whom RBAC lets read a view of an APIExport, besides masters (`--view-callers=rbac`). It asks what kcp asks of those who read its own view, of the ClusterRoles and
 * ClusterRoleBindings that kcp replicates, which are those about this:
 *
 *   its LogicalCluster serves content, and requires no group that the caller is not in   ┐ by what is in the export's
 *   verb=access on /                                                                     │ logical cluster, on the one
 *   the request's verb on apiexports/content, by its name                                ┘ shard that has the export
 *
 * What kcp keeps in `system:admin`, such as cluster-admin, it does not replicate, so it lets nobody in here.
 *
 * VIEW-3 Whoever is let in by RBAC is shown what is in the export's own logical cluster, on its shard. Whoever may write an APIExport says there which identity it exports,
 *    and might name that of others. What kcp caches for an export is in that logical cluster.
 * VIEW-4 Nobody is let in by what may have been taken back: where what decides was not current on the shard before it was read, it is 503. All of it is read at one
 *    revision, so that what never held together lets nobody in.
 * VIEW-5 Only certificates that allow nothing else. Whoever is not let in is answered the same whether or not there is such an export.
 *
 * Cost: of ClusterRoleBindings and ClusterRoles `readBytesMax` are read for a request at most, beyond which nobody is let in, and `turnBytesMax` in a turn of the event
 * loop, for all requests together.
 */
import { setImmediate } from 'node:timers';
import { anonymous, kindOf, withAuthenticated, type Caller } from '../domain/caller.js';
import { logicalClusterType } from '../domain/cluster.js';
import { Refused } from '../domain/errors.js';
import { Pace } from '../domain/pace.js';
import type { Freshness } from '../domain/ports.js';
import type { Objects, Revisions } from '../domain/store-port.js';
import { formatGroupResource, type Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { Place } from './call.js';
import type { Verb } from './kube-request.js';
import { admits, roleAllows, roleGiven, type Action, type Subject } from './rbac.js';
import { exportType } from './resource-schema.js';
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
/** As old as a change may be that is known to be missing here. */
const lagMsMax = 10_000;

export class ViewCallers {
  readonly #parts: ViewCallersParts;
  readonly #pace = new Pace(turnBytesMax, setImmediate);

  constructor(parts: ViewCallersParts) {
    this.#parts = parts;
  }

  /** What of the view the caller may read; undefined for one who may not. Throws Refused(503) where that is not known for sure. */
  async admitted(caller: Caller, view: ViewPath, verb: Verb): Promise<Place | undefined> {
    if (view.kind !== 'apiexport' || !mayBeAdmitted(caller)) return undefined;
    const { objects, revisions } = this.#parts;
    await revisions.reachNewest();
    const found = await objects.find({ ...exportType, shard: '*', cluster: view.cluster, namespace: '', name: view.name });
    const [only] = found;
    if (only === undefined || found.length > 1) return undefined;
    const place: Place = { shard: only.key.shard, cluster: view.cluster };
    // Before anything is read: what comes meanwhile is not in what is read.
    const stale = await this.#stale(place.shard);
    const subject: Subject = { user: caller.user, groups: withAuthenticated(caller.user, caller.groups) };
    const content: Action = { verb, group: exportType.group, resource: exportType.resource, subresource: 'content', name: view.name };
    const at = new RbacAt(this.#parts, { place, subject, revision: revisions.published, pace: this.#pace });
    if (!(await at.mayEnter()) || !(await at.allows([{ verb: 'access', path: '/' }, content]))) return undefined;
    if (stale === undefined) return place;
    throw new Refused({
      reason: 'ServiceUnavailable',
      message: `whom the view is for is not known: what is here of ${formatGroupResource(stale)} of shard ${place.shard} is not current`,
      details: { retryAfterSeconds: 1 },
    });
  }

  /** What decides and is not current. Nobody can say of a shard that is written over plain HTTP whether its newest change is here; what it wrote last is. */
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

/** Kubernetes says of these that they are not authenticated; service accounts are those of a logical cluster, which a certificate does not name. */
function mayBeAdmitted(caller: Caller): boolean {
  const { user, groups } = caller;
  return (
    kindOf(caller) === 'other' &&
    user !== anonymous.user &&
    !anonymous.groups.some((group) => groups.includes(group)) &&
    !user.startsWith(serviceAccount)
  );
}

type RbacAtParts = Readonly<{ place: Place; subject: Subject; revision: Revision; pace: Pace }>;

/** What decides about somebody in a logical cluster of a shard, as it was at one revision, read as far as it is needed. */
class RbacAt {
  readonly #objects: ViewCallersParts['objects'];
  readonly #parts: RbacAtParts;
  #readBytes = 0;
  #turnBytes = 0;

  constructor({ objects }: ViewCallersParts, parts: RbacAtParts) {
    this.#objects = objects;
    this.#parts = parts;
  }

  /** Whether the logical cluster itself lets anybody in, and them. */
  async mayEnter(): Promise<boolean> {
    const { groups } = this.#parts.subject;
    for await (const body of this.#read(logicalClusterType, 'cluster')) return admits(body, groups);
    return false;
  }

  /** Whether each of the actions is allowed by a role that they are given. */
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

  /** Ends early where there is more than may be read. */
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
