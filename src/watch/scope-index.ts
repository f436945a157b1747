/**
 * Which groups of watchers a change may concern. Watchers with the same scope, selector and representation form a group:
 * a change is matched and encoded once for all of them (D5). Groups are found by type and logical cluster, so that a
 * thousand watches of single clusters do not slow a change down in another.
 */
import type { Key } from '../domain/key.js';
import type { Representation } from '../domain/ports.js';
import { formatScope, matches, type Scope } from '../domain/scope.js';
import { formatSelector, type Selector } from '../domain/selector.js';

export type View = Readonly<{ scope: Scope; selector: Selector; representation: Representation }>;

/** Watchers that see the same bytes. */
export type Group<Member> = View & Readonly<{ members: Set<Member> }>;

export class ScopeIndex<Member> {
  readonly #groups = new Map<string, Group<Member>>();
  readonly #buckets = new Map<string, Set<Group<Member>>>();

  join(view: View, member: Member): void {
    const id = groupId(view);
    const group = this.#groups.get(id) ?? { ...view, members: new Set<Member>() };
    group.members.add(member);
    this.#groups.set(id, group);
    const bucketId = bucketOf(view.scope.group, view.scope.resource, view.scope.cluster);
    const bucket = this.#buckets.get(bucketId) ?? new Set();
    bucket.add(group);
    this.#buckets.set(bucketId, bucket);
  }

  leave(view: View, member: Member): void {
    const id = groupId(view);
    const group = this.#groups.get(id);
    if (group === undefined || !group.members.delete(member) || group.members.size > 0) return;
    this.#groups.delete(id);
    const bucketId = bucketOf(view.scope.group, view.scope.resource, view.scope.cluster);
    const bucket = this.#buckets.get(bucketId);
    bucket?.delete(group);
    if (bucket?.size === 0) this.#buckets.delete(bucketId);
  }

  /** The groups whose scope covers the key. */
  *covering(key: Key): Generator<Group<Member>> {
    const { group, resource } = key.resource;
    for (const cluster of ['*', key.cluster]) {
      for (const candidate of this.#buckets.get(bucketOf(group, resource, cluster)) ?? [])
        if (matches(candidate.scope, key)) yield candidate;
    }
  }
}

function groupId({ scope, selector, representation }: View): string {
  return `${representation.id}\n${formatScope(scope)}\n${formatSelector(selector)}`;
}

function bucketOf(group: string, resource: string, cluster: string): string {
  return `${resource}.${group}|${cluster}`;
}
