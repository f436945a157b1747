/**
 * What the demo knows about the folders of examples/, beside their files: which cache each shard
 * pushes into, between which caches it times a change, and what each cache must hold at the end.
 * The last is written here independently of the policies, so that the demo can compare the two.
 */
import type { DealtObject } from './dealt-shards.js';

export type Shape = Readonly<{
  name: string;
  summary: string;
  origins: Readonly<Record<'amber' | 'birch', string>>;
  /** The cache at which the demo waits for a change of amber. */
  far: string;
  holds: Readonly<Record<string, (object: DealtObject) => boolean>>;
}>;

const neededEverywhere = ['apiresourceschemas.apis.kcp.io', 'workspacetypes.tenancy.kcp.io', 'shards.core.kcp.io'];

const everything = (): boolean => true;
const isForTheWorld = ({ isPublic, type }: DealtObject): boolean => isPublic || neededEverywhere.includes(type);
const isOf =
  (shard: string) =>
  (object: DealtObject): boolean =>
    object.shard === shard || isForTheWorld(object);

const perShard: Shape = {
  name: 'per-shard',
  summary: 'a cache beside each shard, and a root where they meet: every cache holds everything',
  origins: { amber: 'cache-amber', birch: 'cache-birch' },
  far: 'cache-birch',
  holds: { root: everything, 'cache-amber': everything, 'cache-birch': everything },
};

const region: Shape = {
  name: 'region',
  summary: 'one cache for both shards of a region, and a root for what leaves it: everything but RBAC',
  origins: { amber: 'region', birch: 'region' },
  far: 'root',
  holds: { region: everything, root: ({ type }) => !type.endsWith('.rbac.authorization.k8s.io') },
};

const chain: Shape = {
  name: 'chain',
  summary: 'three tiers; only what is public goes to the root, and a tenant has a leaf with that and its own',
  origins: { amber: 'leaf-amber', birch: 'region-us' },
  far: 'leaf-tenant-b',
  holds: {
    root: isForTheWorld,
    'region-eu': isOf('amber'),
    'leaf-amber': isOf('amber'),
    'region-us': isOf('birch'),
    'leaf-tenant-b': (object) => isForTheWorld(object) || object.tenant === 'tenant-b',
  },
};

export const shapes: readonly Shape[] = [chain, perShard, region];
