/**
 * Which objects of a shard are replicated, as kcp's own replication controller decides it: data and one function.
 *
 *                          in a sync          as a change
 *   put      it is pushed    put                put
 *   keep     as it was       put, no body       nothing      it is being deleted and waits for its finalizers
 *   gone     it leaves       nothing            delete       it is being deleted, or is not marked (any more)
 *   ignored  never ours      nothing            nothing      its logical cluster is one of the system's
 */
import type { TableType } from '../domain/catalogue.js';
import { isDeclaring } from '../domain/declaration.js';
import { labelsOf, type Labels, type SourceObject } from '../kube/source-object.js';

/** One type of the shard, as it is read. `marked`: only objects with a non-empty `internal.kcp.io/replicate` annotation are replicated. */
export type ReplicatedType = Readonly<{
  group: string;
  version: string;
  resource: string;
  kind: string;
  marked: boolean;
  identityOf: string | undefined;
}>;

export type Selected = 'put' | 'keep' | 'gone' | 'ignored';

export type SelectionRule = Readonly<{
  marked: boolean;
  /** Logical clusters that are replicated although their name begins with `system:`; kcp does so with `system:shard` since September 2026. */
  systemClusters: ReadonlySet<string>;
  /** One of them must select an object; undefined: all do. */
  selectors: readonly Labels[] | undefined;
}>;

/** Those of the table that are replicated; before all others the one whose objects declare types. A type that a shard does not serve is waited for. */
export function replicatedTypes(table: readonly TableType[]): readonly ReplicatedType[] {
  return table
    .filter(({ replicated }) => replicated !== 'never')
    .toSorted((one, other) => Number(isDeclaring(other)) - Number(isDeclaring(one)))
    .map(({ group, storageVersion, resource, kind, replicated, identityOf }) => {
      return { group, version: storageVersion, resource, kind, marked: replicated === 'annotated', identityOf };
    });
}

/** The controller has the same order: a lost mark counts before finalizers that are waited for. */
export function select(object: SourceObject, { marked, systemClusters, selectors }: SelectionRule): Selected {
  if (object.cluster.startsWith('system:') && !systemClusters.has(object.cluster)) return 'ignored';
  if (selectors !== undefined && !isSelected(object, selectors)) return 'gone';
  if (marked && !object.marked) return 'gone';
  if (!object.deleting) return 'put';
  return object.hasFinalizers ? 'keep' : 'gone';
}

function isSelected(object: SourceObject, selectors: readonly Labels[]): boolean {
  const own = labelsOf(object);
  return selectors.some((labels) => labels.every(([key, value]) => own.get(key) === value));
}
