/**
 * The prefix of a view's URL. Pure.
 *
 *   /services/apiexport/CLUSTER/EXPORT[/IDENTITY]/clusters/{*|NAME}/…
 *       objects of the APIs of an APIExport, on all shards
 *   /services/syncer/ID/clusters/NAME/…
 *       objects in a logical cluster that are labelled for a syncer
 */
import { parseClusterName, type ClusterName } from '../../domain/cluster.js';
import { badRequest } from '../../domain/errors.js';
import { labelKeyFlaws } from '../../domain/syntax/label-syntax.js';
import { parsed, refused, type Parsed } from '../../domain/parsed.js';

/** `identity`: undefined if the URL names none. */
export type ViewPath =
  | Readonly<{ kind: 'apiexport'; cluster: ClusterName; name: string; identity: string | undefined }>
  | Readonly<{ kind: 'syncer'; id: string }>;

/** An object for a syncer has a label of this prefix followed by the syncer's id. */
const syncerLabelPrefix = 'state.workload.kcp.io/';

/** `rest`: the segments from `clusters` on. Undefined if the path leads to no view. */
export function parseViewPath(segments: readonly string[]): Parsed<Readonly<{ view: ViewPath; rest: readonly string[] }>> | undefined {
  const [services, kind, ...own] = segments;
  if (services !== 'services') return undefined;
  if (kind === 'apiexport') return parseExport(own);
  return kind === 'syncer' ? parseSyncer(own) : undefined;
}

export function syncerLabel(id: string): string {
  return `${syncerLabelPrefix}${id}`;
}

function parseExport([clusterText = '', name = '', ...own]: readonly string[]): ReturnType<typeof parseViewPath> {
  const cluster = parseClusterName(clusterText);
  const [identity, rest] = own[0] === 'clusters' ? [undefined, own] : [own[0], own.slice(1)];
  if (cluster === undefined || name === '' || identity === '' || rest[0] !== 'clusters')
    return refused(
      badRequest(
        'the path of a view begins with /services/apiexport/CLUSTER/EXPORT[/IDENTITY]/clusters/CLUSTER; the first CLUSTER must be a name',
      ),
    );
  return parsed({ view: { kind: 'apiexport', cluster, name, identity }, rest });
}

function parseSyncer([id = '', ...rest]: readonly string[]): ReturnType<typeof parseViewPath> {
  if (id === '' || labelKeyFlaws(syncerLabel(id)).length > 0 || rest[0] !== 'clusters' || parseClusterName(rest[1] ?? '') === undefined)
    return refused(badRequest('the path of a view begins with /services/syncer/ID/clusters/CLUSTER; CLUSTER must be a name'));
  return parsed({ view: { kind: 'syncer', id }, rest });
}
