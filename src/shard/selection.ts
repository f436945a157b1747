/**
 * Which objects of a shard are replicated, as in kcp's own replication controller.
 *
 *           in a sync       as a change   when
 *  put      put             put           in all other cases
 *  keep     put, no body    nothing       it is being deleted and waits for its finalizers
 *  gone     nothing         delete        it is being deleted, is not marked, or is not selected
 *  ignored  nothing         nothing       its logical cluster is a system one
 */
import type { TableType } from '../domain/catalogue/catalogue.js';
import { isDeclaring } from '../domain/catalogue/declaration.js';
import { labelsOf, type Labels, type SourceObject } from '../kube/source-object.js';

/**
 * One type of the shard, as the agent reads it. `marked`: only objects with a non-empty annotation
 * `internal.kcp.io/replicate` are replicated.
 */
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
  /**
   * Logical clusters that are replicated although their name begins with `system:`. kcp replicates
   * `system:shard` since September 2026.
   */
  systemClusters: ReadonlySet<string>;
  /** An object must match one selector; undefined: every object matches. */
  selectors: readonly Labels[] | undefined;
}>;

/**
 * The replicated types of the table. The type whose objects declare types is first. If the shard
 * does not serve a type, the agent waits for it.
 */
export function replicatedTypes(table: readonly TableType[]): readonly ReplicatedType[] {
  return table
    .filter(({ replicated }) => replicated !== 'never')
    .toSorted((one, other) => Number(isDeclaring(other)) - Number(isDeclaring(one)))
    .map(({ group, storageVersion, resource, kind, replicated, identityOf }) => {
      return { group, version: storageVersion, resource, kind, marked: replicated === 'annotated', identityOf };
    });
}

/**
 * The order of the checks is the same as in kcp's controller: an object without its mark is gone,
 * even if finalizers are pending.
 */
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
