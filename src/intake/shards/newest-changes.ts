/**
 * The revision of the newest change of each type, deletes included. A client that has followed a
 * type up to that revision has every object of that type that this cache has. A type that has not
 * changed since the start has the revision of the start.
 *
 * Bound: `typesMax` types. With more, all types count as changed just now, and the table starts
 * over.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import type { Subscription } from '../../domain/ports.js';
import type { Commits, Revisions } from '../../domain/store-port.js';
import { formatGroupResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';

const typesMax = 50_000;

export class NewestChanges {
  readonly #revisions: Pick<Revisions, 'published'>;
  readonly #subscription: Subscription;
  /** Keyed by group and resource, then by identity. */
  readonly #types = new Map<string, Map<string, Revision>>();
  #count = 0;
  /** The revision of every type that is not in the table. */
  #others: Revision;

  constructor({ commits, revisions }: Readonly<{ commits: Commits; revisions: Pick<Revisions, 'published'> }>) {
    this.#revisions = revisions;
    this.#others = revisions.published;
    this.#subscription = commits.subscribe(({ changes }) => {
      for (const { key, revision } of changes) this.#record(key.resource, revision);
    });
  }

  /** If `identity` is undefined, the newest change of all identities. */
  of({ group, resource, identity }: Pick<Resource, 'group' | 'resource'> & Readonly<{ identity: string | undefined }>): Revision {
    const identities = this.#types.get(formatGroupResource({ group, resource }));
    if (identity !== undefined) return identities?.get(identity) ?? this.#others;
    let newest = this.#others;
    for (const revision of identities?.values() ?? []) newest = Math.max(newest, revision);
    return newest;
  }

  close(): void {
    this.#subscription.cancel();
  }

  #record(type: Resource, revision: Revision): void {
    const name = formatGroupResource(type);
    const identities = entryOf(this.#types, name, () => new Map<string, Revision>());
    if (!identities.has(type.identity)) this.#count += 1;
    identities.set(type.identity, revision);
    if (this.#count <= typesMax) return;
    this.#types.clear();
    this.#count = 0;
    this.#others = this.#revisions.published;
  }
}
