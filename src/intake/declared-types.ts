/**
 * Keeps the catalogue in step with the ClusterCachedResources in the store (P5–P8): what they declare is served as soon as
 * they are published, and when the last one of an identity goes, its objects are deleted, then its watches end.
 */
import type { Catalogue } from '../domain/catalogue.js';
import type { Declared } from '../domain/declaration.js';
import type { Change, Commit } from '../domain/change.js';
import type { Key } from '../domain/key.js';
import type { Commits, Objects, Revisions, Subscription, Watches, Writer } from '../domain/ports.js';
import type { Resource } from '../domain/resource.js';
import type { Scope } from '../domain/scope.js';
import type { Log } from '../diagnostics/log.js';

export type DeclaredTypesParts = Readonly<{
  catalogue: Catalogue;
  objects: Objects;
  revisions: Revisions;
  writer: Writer;
  commits: Commits;
  watches: Watches;
  log: Log;
}>;

const declaring: Resource = { group: 'cache.kcp.io', resource: 'clustercachedresources', identity: '' };

export class DeclaredTypes {
  readonly #parts: DeclaredTypesParts;
  readonly #subscription: Subscription;
  readonly #removals = new Set<Promise<void>>();

  private constructor(parts: DeclaredTypesParts) {
    this.#parts = parts;
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
  }

  /** `held` are the resources that hold objects: one that nothing declares any more was left when a server died. */
  static async open(parts: DeclaredTypesParts, held: readonly Resource[]): Promise<DeclaredTypes> {
    const opened = new DeclaredTypes(parts);
    for await (const { key, body } of opened.#all(everything(declaring))) parts.catalogue.declare(placeOf(key), body.bytes);
    const declared = new Set(parts.catalogue.declared().map(({ identity }) => identity));
    opened.#remove(held.filter(({ identity }) => identity !== '' && !declared.has(identity)));
    return opened;
  }

  close(): void {
    this.#subscription.cancel();
  }

  #follow({ changes }: Commit): void {
    for (const change of changes) if (isDeclaring(change)) this.#remove(this.#declare(change));
  }

  #declare(change: Change): readonly Declared[] {
    const { catalogue } = this.#parts;
    return change.kind === 'put'
      ? catalogue.declare(placeOf(change.key), change.object.body.bytes)
      : catalogue.withdraw(placeOf(change.key));
  }

  #remove(gone: readonly Resource[]): void {
    for (const resource of gone) {
      const removal = this.#removeAll(resource)
        .catch((error: unknown) => this.#parts.log.error('type.removal-failed', { ...resource, error }))
        .finally(() => this.#removals.delete(removal));
      this.#removals.add(removal);
    }
  }

  async #removeAll(resource: Resource): Promise<void> {
    let removed = 0;
    for await (const { key } of this.#all(everything(resource))) {
      const outcome = await this.#parts.writer.submit({ kind: 'delete', key, expect: 'any' });
      if (outcome.kind === 'written') removed += 1;
    }
    this.#parts.watches.endOf(resource);
    this.#parts.log.info('type.removed', { ...resource, objects: removed });
  }

  async *#all(scope: Scope) {
    const snapshot = this.#parts.objects.snapshot(scope, this.#parts.revisions.published);
    try {
      let after: Key | undefined;
      do {
        const page = await snapshot.page(after);
        yield* page.objects;
        after = page.next;
      } while (after !== undefined);
    } finally {
      snapshot.close();
    }
  }
}

function isDeclaring({ key: { resource } }: Change): boolean {
  return resource.resource === declaring.resource && resource.group === declaring.group;
}

function everything({ group, resource, identity }: Resource): Scope {
  return { group, resource, identity, shard: '*', cluster: '*' };
}

function placeOf({ shard, cluster, name }: Key): { shard: string; cluster: string; name: string } {
  return { shard, cluster, name };
}
