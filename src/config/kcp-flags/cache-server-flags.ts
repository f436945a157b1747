/**
 * How this server treats each flag of kcp's `cache-server`. The etcd flags name the etcd of this
 * server's store. Without them the store is SQLite.
 */
import { options } from '../options/options.js';
import { readStringSlice } from '../options/string-slice.js';
import {
  accepted,
  becomes,
  decided,
  decidedOfList,
  option,
  refusal,
  refused,
  servingFlags,
  warned,
  warning,
  type FlagEffect,
  type UpstreamFlag,
  type UpstreamTable,
} from './upstream-flags.js';

/** The defaults that differ from `strata serve` when the program runs in place of kcp's program. */
export const cacheServerDefaults = { 'root-directory': '.kcp-cache' } as const;

const embeddedEtcd = 'there is no embedded etcd here: the store is SQLite, or the etcd of --etcd-servers';
const noEtcd = 'this server decides that itself if its store is etcd';
const noGenericStorage = 'the store of this server has nothing that it could tune';
const healthPaths = ['/healthz', '/readyz', '/livez'];

export const cacheServerFlags: UpstreamTable = new Map<string, UpstreamFlag>([
  ...servingFlags,

  ['embedded-etcd-directory', becomes('data-directory', options.dataDirectory.help)],
  ...['peer-port', 'client-port', 'listen-metrics-urls', 'wal-size-bytes', 'quota-backend-bytes'].map(
    (name) => [`embedded-etcd-${name}`, warned(embeddedEtcd)] as const,
  ),
  ['embedded-etcd-force-new-cluster', warned(embeddedEtcd, true)],

  [
    'etcd-servers',
    decidedOfList(`${options.etcdServers.help} embedded means the data directory too.`, (value) =>
      value === 'embedded' ? [accepted] : [option('etcd-servers', value)],
    ),
  ],
  [
    'etcd-prefix',
    decided(`${options.etcdPrefix.help} As with kcp's own, /registry is /cache.`, (value) => [
      option('etcd-prefix', value === '/registry' ? '/cache' : value),
    ]),
  ],
  ['etcd-servers-overrides', refused('all objects are in one etcd; give it as --etcd-servers')],
  ...['compaction-interval', 'count-metric-poll-period', 'db-metric-poll-interval', 'healthcheck-timeout', 'readycheck-timeout'].map(
    (name) => [`etcd-${name}`, warned(noEtcd)] as const,
  ),
  ['encryption-provider-config', refused('objects are not encrypted at rest here; use an encrypted volume and leave it out')],
  ['encryption-provider-config-automatic-reload', warned(noGenericStorage, true)],
  ['storage-backend', warned(noEtcd)],
  [
    'storage-media-type',
    decided('application/json', (value) =>
      value === 'application/json' ? [accepted] : [warning('the store keeps objects as the JSON in which they came')],
    ),
  ],
  ...['delete-collection-workers', 'default-watch-cache-size', 'watch-cache-sizes', 'lease-reuse-duration-seconds'].map(
    (name) => [name, warned(noGenericStorage)] as const,
  ),
  ...['enable-garbage-collector', 'watch-cache'].map((name) => [name, warned(noGenericStorage, true)] as const),

  [options.publicPaths.flag, decidedOfList(options.publicPaths.help, decideOpenPaths)],
]);

/**
 * Only health and metrics can be open to everybody. A longer list is cut with a warning. A list
 * without health is refused, because health endpoints are always open.
 */
function decideOpenPaths(value: string): readonly FlagEffect[] {
  const paths = readStringSlice(value);
  if (paths === undefined) return [refusal(`must be ${options.publicPaths.acceptedValues}`)];
  const closed = healthPaths.filter((path) => !paths.includes(path));
  if (closed.length > 0) return [refusal(`${closed.join(', ')} always answer everybody and cannot be closed: name them as well`)];
  const open = [...healthPaths, '/metrics'].filter((path) => paths.includes(path));
  const isMore = paths.some((path) => !open.includes(path));
  return [
    option(options.publicPaths.flag, open.join(',')),
    ...(isMore ? [warning('of these, only the health endpoints and /metrics can answer everybody')] : []),
  ];
}
