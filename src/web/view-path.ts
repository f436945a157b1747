/**
 * The prefix of a view's URL. Pure.
 *
 *   /services/apiexport/CLUSTER/EXPORT[/IDENTITY]/clusters/{*|NAME}/…   what the APIs of an APIExport have, on all shards
 *   /services/syncer/ID/clusters/NAME/…                                 what is labelled for a syncer in a logical cluster
 */
import { parseClusterName, type ClusterName } from '../domain/cluster.js';
import { badRequest } from '../domain/errors.js';
import { labelKeyFlaws } from '../domain/label-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';

/** `identity`: as the URL names it; undefined where it names none. */
export type ViewPath =
  | Readonly<{ kind: 'apiexport'; cluster: ClusterName; name: string; identity: string | undefined }>
  | Readonly<{ kind: 'syncer'; id: string }>;

/** Objects for a syncer carry a label of this prefix and its id. */
const syncerLabelPrefix = 'state.workload.kcp.io/';

/** `rest`: the segments from `clusters` on. Undefined when the segments begin with no view. */
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
        'a view of an APIExport begins with /services/apiexport/CLUSTER/EXPORT[/IDENTITY]/clusters/CLUSTER, where the first cluster is a name',
      ),
    );
  return parsed({ view: { kind: 'apiexport', cluster, name, identity }, rest });
}

function parseSyncer([id = '', ...rest]: readonly string[]): ReturnType<typeof parseViewPath> {
  if (id === '' || labelKeyFlaws(syncerLabel(id)).length > 0 || rest[0] !== 'clusters' || parseClusterName(rest[1] ?? '') === undefined)
    return refused(badRequest('the view of a syncer begins with /services/syncer/ID/clusters/CLUSTER, where the cluster is a name'));
  return parsed({ view: { kind: 'syncer', id }, rest });
}
