/**
 * The types whose objects a reader keeps in memory, each by a watch. The watches share HTTP/2
 * connections.
 */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import { AbsentTypes } from '../kube/absent-types.js';
import { Identities } from '../kube/identities.js';
import { KubeClient } from '../kube/kube-client.js';
import { KubeReader } from '../kube/kube-reader.js';
import type { KubeAccess } from '../kube/kube-access.js';
import { collectionTarget, type CollectionRef } from './object-ref.js';
import { WatchedType, type WatchedTypeOptions, type WatchState } from './watched-type.js';

/**
 * A type that every cache serves. If ClusterCachedResources declare a type, a watch of it does not
 * show in which logical clusters it is served.
 */
export type WatchedRef = Pick<CollectionRef, 'group' | 'version' | 'resource'>;

export type WatchedTypesParts = Readonly<{ access: KubeAccess; clock: Clock; random: () => number; log: Log; userAgent: string }>;

const linesAtOnceMax = 20;

export class WatchedTypes {
  readonly #types: ReadonlyMap<string, Readonly<{ ref: WatchedRef; type: WatchedType }>>;
  readonly #client: KubeClient | undefined;

  constructor(types: readonly (readonly [WatchedRef, WatchedType])[], client?: KubeClient) {
    this.#types = new Map(types.map(([ref, type]) => [nameOf(ref), { ref, type }]));
    this.#client = client;
  }

  /** `access` leads to all shards of the cache. */
  static open({ access, clock, random, log, userAgent }: WatchedTypesParts, refs: readonly WatchedRef[], options: WatchedTypeOptions) {
    const client = new KubeClient({ access, clock, userAgent });
    const boundedLog = new BoundedLog({ clock, log }, { linesMax: linesAtOnceMax });
    const parts = { client, identities: new Identities({ client }), absent: new AbsentTypes(), clock, random, log, boundedLog };
    // Checks all types before it reads any: this throws for texts that cannot be names.
    for (const ref of refs) collectionTarget({ ...ref, cluster: 'any' });
    const byName = new Map(refs.map((ref) => [nameOf(ref), ref]));
    const types = [...byName.values()].map((ref) => {
      const reader = new KubeReader(parts, { ...ref, cluster: '*', identityOf: undefined, labelSelector: '' });
      return [ref, new WatchedType({ read: (signal) => reader.read(signal) }, options)] as const;
    });
    return new WatchedTypes(types, client);
  }

  of(ref: CollectionRef): WatchedType | undefined {
    if (this.#types.size === 0 || (ref.identity ?? '') !== '') return undefined;
    return this.#types.get(nameOf(ref))?.type;
  }

  states(): readonly (WatchedRef & WatchState)[] {
    return [...this.#types.values()].map(({ ref, type }) => ({ ...ref, ...type.state }));
  }

  close(): void {
    for (const { type } of this.#types.values()) type.close();
    this.#client?.close();
  }
}

function nameOf({ group, version, resource }: WatchedRef): string {
  return `${group}/${version}/${resource}`;
}
