/**
 * The page's view, which its address encodes after the '#', so that users can bookmark and share
 * it. Pure.
 */
export type Route = Readonly<{ kind: 'overview' }> | ObjectsRoute;

/** `type`: resource.group, and its identity after a colon. `open`: the object that is shown. */
export type ObjectsRoute = Readonly<{
  kind: 'objects';
  type: string;
  shard: string;
  cluster: string;
  name: string;
  open: ObjectName | undefined;
}>;

export type ObjectName = Readonly<{ shard: string; cluster: string; namespace: string; name: string }>;

const everything = '*';

/** No type chosen yet, and all shards and logical clusters. */
export const allObjects: ObjectsRoute = { kind: 'objects', type: '', shard: everything, cluster: everything, name: '', open: undefined };

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  if (path !== 'objects') return { kind: 'overview' };
  const asked = new URLSearchParams(query);
  const open = asked.get('open')?.split('/');
  const isName = (text: string): boolean => text !== '.' && text !== '..';
  return {
    kind: 'objects',
    type: asked.get('type') ?? '',
    shard: asked.get('shard') || everything,
    cluster: asked.get('cluster') || everything,
    name: asked.get('name') ?? '',
    open:
      open?.length === 4 && open.every(isName) ? { shard: open[0]!, cluster: open[1]!, namespace: open[2]!, name: open[3]! } : undefined,
  };
}

export function formatRoute(route: Route): string {
  if (route.kind === 'overview') return '#/';
  const { type, shard, cluster, name, open } = route;
  const query = new URLSearchParams({ type });
  if (shard !== everything) query.set('shard', shard);
  if (cluster !== everything) query.set('cluster', cluster);
  if (name !== '') query.set('name', name);
  if (open !== undefined) query.set('open', [open.shard, open.cluster, open.namespace, open.name].join('/'));
  return `#/objects?${query}`;
}
