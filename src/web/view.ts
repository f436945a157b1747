/**
 * Views: what is read of the cache below a URL that names not a place but an APIExport or a syncer. They are read only.
 *
 * VIEW-1 Below an APIExport nothing shows but objects of the APIs that it exports, under the identity that it exports them with: its own, or that of what is cached for it
 *    (`storage.virtual`). Types that have no identity are none of these, whatever an export says.
 * VIEW-2 Which identity that is is read for each request. A change of the APIExport ends its watches with 410, and one that goes on from before it is 410.
 */
import type { Catalogue, Resolution, ServedType, TypeRequest } from '../domain/catalogue.js';
import type { ClusterName } from '../domain/cluster.js';
import { Refused } from '../domain/errors.js';
import type { Resource } from '../domain/resource.js';
import type { StoredObject } from '../domain/object.js';
import type { Selector } from '../domain/selector.js';
import type { Objects } from '../domain/store-port.js';
import { inSeveralPlaces } from './get.js';
import { objectNotFound, type Verb } from './kube-request.js';
import type { Documented } from './openapi-schema.js';
import { exportedResources, exportType } from './resource-schema.js';
import { syncerLabel, type ViewPath } from './view-path.js';

export interface View {
  /** What every object of it carries. */
  readonly labels: Selector['labels'];
  /** What says which objects it shows, and when that has changed last; undefined where nothing does. */
  readonly shownBy: StoredObject | undefined;
  resolve(asked: TypeRequest): Resolution;
  /** What discovery shows below a logical cluster, or below '*'. */
  types(cluster: ClusterName | '*'): readonly Documented[];
}

const verbs: readonly Verb[] = ['get', 'list', 'watch'];

/** Throws Refused: 404 for an APIExport that is not there, or has another identity than the one that is asked for; 409 where several shards have it. */
export async function openView(
  path: ViewPath,
  { objects, catalogue }: Readonly<{ objects: Pick<Objects, 'find'>; catalogue: Catalogue }>,
): Promise<View> {
  if (path.kind === 'syncer') return viewOfSyncer(path.id, catalogue);
  const { cluster, name } = path;
  const scope = { ...exportType, shard: '*', cluster, namespace: '', name } as const;
  const found = await objects.find(scope);
  const [only, ...others] = found;
  // Which of them has the logical cluster nobody says here, and one of them may lie.
  if (others.length > 0)
    throw new Refused(
      inSeveralPlaces(
        scope,
        found.map(({ key }) => key),
      ),
    );
  const exported = only && exportedResources(only.body.bytes);
  if (only === undefined || exported === undefined || (path.identity !== undefined && path.identity !== exported.identity))
    throw new Refused(objectNotFound(exportType, name));
  return viewOfExport(only, new Map(exported.resources.map((each) => [familyOf(each), each.identity])), catalogue);
}

/** `identities`: by group and resource. */
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

/** No text that an export names makes two types of one. */
function familyOf({ group, resource }: Pick<Resource, 'group' | 'resource'>): string {
  return JSON.stringify([group, resource]);
}
