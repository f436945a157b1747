/**
 * Whom RBAC lets read a view of an APIExport, besides masters (`--view-callers=rbac`). It asks what kcp asks of those who read its own view, of the ClusterRoles and
 * ClusterRoleBindings that kcp replicates, which are those about this:
 *
 *   verb=access on /                                        ┐ both, by what is in the export's logical cluster on the one
 *   the request's verb on apiexports/content, by its name   ┘ shard that has the export
 *
 * What kcp keeps in `system:admin`, such as cluster-admin, it does not replicate, so it lets nobody in here.
 *
 * VIEW-3 Whoever is let in by RBAC is shown what is in the export's own logical cluster, on its shard. Whoever may write an APIExport says there which identity it exports,
 *    and might name that of others. What kcp caches for an export is in that logical cluster.
 * VIEW-4 Nobody is let in by what may have been taken back: where the shard's roles or bindings are not current, it is 503.
 * VIEW-5 Only certificates that allow nothing else. Whoever is not let in learns nothing, neither of the export.
 *
 * Cost: of ClusterRoleBindings and ClusterRoles `readBytesMax` are read for a request at most; beyond that nobody is let in.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { kindOf, type Caller } from '../domain/caller.js';
import { Refused } from '../domain/errors.js';
import type { Freshness } from '../domain/ports.js';
import type { Objects, Revisions } from '../domain/store-port.js';
import { formatGroupResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { Place } from './call.js';
import type { Verb } from './kube-request.js';
import { roleAllows, roleGiven, type Action, type Subject } from './rbac.js';
import { exportType } from './resource-schema.js';
import type { ViewPath } from './view-path.js';

export type ViewCallersParts = Readonly<{
  objects: Pick<Objects, 'find' | 'get' | 'snapshot'>;
  revisions: Pick<Revisions, 'published' | 'reachNewest'>;
  freshness: Pick<Freshness, 'ofType'>;
}>;

const roles: Resource = { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', identity: '' };
const bindings: Resource = { ...roles, resource: 'clusterrolebindings' };
const serviceAccount = 'system:serviceaccount:';
const readBytesMax = 1024 * 1024;
const turnBytesMax = 64 * 1024;
/** As old as a change may be that is known to be missing here. */
const lagMsMax = 10_000;

export class ViewCallers {
  readonly #parts: ViewCallersParts;

  constructor(parts: ViewCallersParts) {
    this.#parts = parts;
  }

  /** What of the view the caller may read; undefined for one who may not. Throws Refused(503) where that is not known for sure. */
  async admitted(caller: Caller, view: ViewPath, verb: Verb): Promise<Place | undefined> {
    if (view.kind !== 'apiexport' || kindOf(caller) !== 'other' || caller.user.startsWith(serviceAccount)) return undefined;
    const { objects, revisions } = this.#parts;
    await revisions.reachNewest();
    const found = await objects.find({ ...exportType, shard: '*', cluster: view.cluster, namespace: '', name: view.name });
    const [only] = found;
    if (only === undefined || found.length > 1) return undefined;
    const place: Place = { shard: only.key.shard, cluster: view.cluster };
    const subject: Subject = { user: caller.user, groups: [...caller.groups, 'system:authenticated'] };
    const content: Action = { verb, group: exportType.group, resource: exportType.resource, subresource: 'content', name: view.name };
    const given = new RolesGiven(this.#parts, place, subject);
    if (!(await given.allow([{ verb: 'access', path: '/' }, content]))) return undefined;
    for (const type of [roles, bindings]) await this.#assertCurrent(type, place.shard);
    return place;
  }

  /** Nobody can say of a shard that is written over plain HTTP whether its newest change is here; what it wrote last is. */
  async #assertCurrent({ group, resource }: Resource, shard: ShardName): Promise<void> {
    const { shards } = await this.#parts.freshness.ofType({ group, resource, identity: '', shard });
    const isCurrent =
      shards.length > 0 &&
      shards.every(
        ({ whole, connection, sourceConnected, lagMs }) =>
          whole && connection.kind !== 'away' && sourceConnected !== false && (lagMs ?? 0) <= lagMsMax,
      );
    if (!isCurrent)
      throw new Refused({
        reason: 'ServiceUnavailable',
        message: `whom the view is for is not known: what is here of ${formatGroupResource({ group, resource })} of shard ${shard} is not current`,
        details: { retryAfterSeconds: 1 },
      });
  }
}

/** The ClusterRoles that somebody is given in a logical cluster of a shard, read as far as they are needed. */
class RolesGiven {
  readonly #parts: ViewCallersParts;
  readonly #place: Place;
  readonly #subject: Subject;
  #readBytes = 0;
  #turnBytes = 0;

  constructor(parts: ViewCallersParts, place: Place, subject: Subject) {
    this.#parts = parts;
    this.#place = place;
    this.#subject = subject;
  }

  /** Whether each of the actions is allowed by one of them. */
  async allow(actions: readonly Action[]): Promise<boolean> {
    const left = new Set(actions);
    for (const name of await this.#names()) {
      const role = await this.#parts.objects.get({ ...this.#place, resource: roles, namespace: '', name });
      if (role === undefined) continue;
      if (!(await this.#mayRead(role.body.bytes))) return false;
      for (const action of left) if (roleAllows(role.body.bytes, action)) left.delete(action);
      if (left.size === 0) return true;
    }
    return false;
  }

  async #names(): Promise<ReadonlySet<string>> {
    const { objects, revisions } = this.#parts;
    const names = new Set<string>();
    for await (const page of snapshotPages(objects.snapshot({ ...bindings, ...this.#place }, revisions.published)))
      for (const { body } of page) {
        if (!(await this.#mayRead(body.bytes))) return new Set();
        const name = roleGiven(body.bytes, this.#subject);
        if (name !== undefined) names.add(name);
      }
    return names;
  }

  /** Gives the event loop back between some of them. */
  async #mayRead({ length }: Uint8Array): Promise<boolean> {
    this.#readBytes += length;
    this.#turnBytes += length;
    if (this.#turnBytes > turnBytesMax) {
      this.#turnBytes = 0;
      await turn();
    }
    return this.#readBytes <= readBytesMax;
  }
}
