/**
 * Views: read-only subsets of the cache, for a URL that names an APIExport or a syncer instead of a
 * place.
 *
 * VIEW-1 A view of an APIExport shows only objects of the APIs that the export has, under the
 *    identity with which it exports them. This identity is the export's own, or the identity of the
 *    resource that is cached for it (`storage.virtual`). It never shows a type without identity,
 *    whatever the export says.
 * VIEW-2 The identity is read for each request. A change of the APIExport ends the watches with
 *    410. A watch or list that continues from before the change gets 410.
 */
import type { Catalogue, Resolution, ServedType, TypeRequest } from '../../domain/catalogue/catalogue.js';
import type { ClusterName } from '../../domain/cluster.js';
import { Refused } from '../../domain/errors.js';
import type { Resource } from '../../domain/resource.js';
import type { StoredObject } from '../../domain/object.js';
import type { Selector } from '../../domain/syntax/selector.js';
import type { Objects } from '../../domain/store-port.js';
import { ambiguousName } from '../kube/get.js';
import { objectNotFound, type Verb } from '../kube/kube-request.js';
import type { Documented } from '../discovery/openapi-schema.js';
import { exportedResources, exportType } from '../discovery/resource-schema.js';
import { syncerLabel, type ViewPath } from './view-path.js';

export interface View {
  /** Labels that every object of the view has. */
  readonly labels: Selector['labels'];
  /** The object that decides what the view shows; undefined if there is none. */
  readonly shownBy: StoredObject | undefined;
  resolve(asked: TypeRequest): Resolution;
  /** The types that discovery shows below a logical cluster, or below '*'. */
  types(cluster: ClusterName | '*'): readonly Documented[];
}

const verbs: readonly Verb[] = ['get', 'list', 'watch'];

/**
 * Throws Refused: 404 if the APIExport does not exist or the URL has another identity, 409 if
 * several shards have the APIExport.
 */
export async function openView(
  path: ViewPath,
  { objects, catalogue }: Readonly<{ objects: Pick<Objects, 'find'>; catalogue: Catalogue }>,
): Promise<View> {
  if (path.kind === 'syncer') return viewOfSyncer(path.id, catalogue);
  const { cluster, name } = path;
  const scope = { ...exportType, shard: '*', cluster, namespace: '', name } as const;
  const found = await objects.find(scope);
  const [only, ...others] = found;
  // The cache cannot prove which shard owns the logical cluster, and a shard may lie.
  if (others.length > 0)
    throw new Refused(
      ambiguousName(
        scope,
        found.map(({ key }) => key),
      ),
    );
  const exported = only && exportedResources(only.body.bytes);
  if (only === undefined || exported === undefined || (path.identity !== undefined && path.identity !== exported.identity))
    throw new Refused(objectNotFound(exportType, name));
  return viewOfExport(only, new Map(exported.resources.map((each) => [familyOf(each), each.identity])), catalogue);
}

function viewOfExport(shownBy: StoredObject, identities: ReadonlyMap<string, string>, catalogue: Catalogue): View {
  const resolve: View['resolve'] = (asked) => {
    const identity = identities.get(familyOf(asked));
    if (identity === undefined || identity === '' || asked.identity !== undefined) return { kind: 'unknown' };
    const found = catalogue.resolve({ ...asked, identity, cluster: '*', partial: false });
    return found.kind === 'found' && found.identity === identity ? found : { kind: 'unknown' };
  };
  const isShown = (type: ServedType): boolean => type.identity !== '' && identities.get(familyOf(type)) === type.identity;
  return { labels: [], shownBy, resolve, types: () => catalogue.declared().filter(isShown).map(readOnly) };
}

function viewOfSyncer(id: string, catalogue: Catalogue): View {
  return {
    labels: [{ kind: 'exists', key: syncerLabel(id) }],
    shownBy: undefined,
    resolve: (asked) => catalogue.resolve(asked),
    types: (cluster) => catalogue.forCluster(cluster).map(readOnly),
  };
}

function readOnly(type: ServedType): Documented {
  return { ...type, verbs };
}

/** JSON, because an export may contain any text as group and resource. */
function familyOf({ group, resource }: Pick<Resource, 'group' | 'resource'>): string {
  return JSON.stringify([group, resource]);
}
