/**
 * Refuses a table that changes the scope of a type while plain writers' objects of the type are
 * stored. No URL would lead to these objects, and no plain writer would send them again, as pushers
 * and links do. Kubernetes also lets no CustomResourceDefinition change its scope.
 */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { kcpTypes } from '../../domain/catalogue/catalogue-kcp.js';
import { CacheError } from '../../domain/errors.js';
import type { PublishedState } from '../../domain/published-state.js';
import { formatGroupResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { Objects, Revisions } from '../../domain/store-port.js';

type Parts = Readonly<{
  objects: Pick<Objects, 'resources' | 'snapshot'>;
  revisions: Pick<Revisions, 'published'>;
  state: Pick<PublishedState, 'shard' | 'slicesOfType'>;
}>;

export class TypeScopes {
  readonly #state: Parts['state'];
  /** By group and resource: whether the type is namespaced, or was when its objects were stored. */
  readonly #namespaced = new Map<string, boolean>(kcpTypes.map((type) => [formatGroupResource(type), type.namespaced]));

  private constructor(state: Parts['state']) {
    this.#state = state;
  }

  /** Reads one stored object of each type that is not built in. Rejects as `check` does. */
  static async open(table: readonly ServedType[], { objects, revisions, state }: Parts): Promise<TypeScopes> {
    const opened = new TypeScopes(state);
    for (const resource of await objects.resources()) {
      const name = formatGroupResource(resource);
      const shard = resource.identity === '' && !opened.#namespaced.has(name) ? opened.#plainShard(resource) : undefined;
      if (shard === undefined) continue;
      const scope = { ...resource, shard, cluster: '*' } as const;
      for await (const [object] of snapshotPages(objects.snapshot(scope, revisions.published))) {
        if (object === undefined) continue;
        opened.#namespaced.set(name, object.key.namespace !== '');
        break;
      }
    }
    opened.check(table);
    opened.record(table);
    return opened;
  }

  /** Throws CacheError. */
  check(table: readonly ServedType[]): void {
    for (const type of table) {
      const name = formatGroupResource(type);
      const former = this.#namespaced.get(name) ?? type.namespaced;
      const shard = former === type.namespaced ? undefined : this.#plainShard(type);
      if (shard === undefined) continue;
      throw new CacheError(
        `--types-file: ${name} must keep the scope ${former ? 'Namespaced' : 'Cluster'} while the shard ${shard}, which has no agent, has objects of it`,
      );
    }
  }

  /** Call this once the table is in use. */
  record(table: readonly ServedType[]): void {
    for (const type of table) this.#namespaced.set(formatGroupResource(type), type.namespaced);
  }

  /** A shard with objects of the type that only plain writers write. */
  #plainShard({ group, resource }: Pick<Resource, 'group' | 'resource'>): ShardName | undefined {
    for (const slices of this.#state.slicesOfType({ group, resource, identity: '' }))
      // A store of kcp's cache server knows no shards, and plain writers have written all of it.
      for (const [shard, { objects }] of slices) if (objects > 0 && (this.#state.shard(shard)?.plain ?? true)) return shard;
    return undefined;
  }
}
