/**
 * Paths, bodies and scopes of Roles, which the model uses because they have namespaces and every
 * kcp has them.
 */
import type { KubeObject } from '../../support/kube-client.js';
import type { Change, Covered, ObjectKey } from '../../support/watch-history.js';

export type Place = Readonly<{ shard: string; cluster: string; namespace: string; name: string }>;

/**
 * The content of a Role. `turn`: a label that no two writes share; `tier`: a label for selectors;
 * `rules`: what a patch leaves as it is.
 */
export type Content = Readonly<{ turn: string; tier: string; rules: Readonly<{ turn: string; count: number }> }>;

/** '*' and undefined match anything. */
export type RoleScope = Readonly<{ shard: string; cluster: string; namespace?: string | undefined; name?: string | undefined }>;

type Selects = (change: Pick<Change, 'key' | 'labels'>) => boolean;

/** Label selectors as they are sent, each with its meaning. */
export const selectors: Readonly<Record<string, Selects>> = {
  'tier=gold': ({ labels }) => labels['tier'] === 'gold',
  'tier!=gold': ({ labels }) => labels['tier'] !== 'gold',
  'tier in (gold,tin)': ({ labels }) => labels['tier'] === 'gold' || labels['tier'] === 'tin',
  '!tier': ({ labels }) => labels['tier'] === undefined,
};

export const everywhere: RoleScope = { shard: '*', cluster: '*' };

export function keyAt({ shard, cluster, namespace, name }: Place): ObjectKey {
  return [shard, cluster, namespace, name].join('|');
}

/** The path of the scope's collection; `scopeQuery` selects the name, if the scope has one. */
export function scopePath({ shard, cluster, namespace }: RoleScope): string {
  const within = namespace === undefined ? '' : `/namespaces/${namespace}`;
  return `/services/cache/shards/${shard}/clusters/${cluster}/apis/rbac.authorization.k8s.io/v1${within}/roles`;
}

export function scopeQuery({ name }: RoleScope, selector: string): Readonly<Record<string, string>> {
  return {
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    ...(selector === '' ? {} : { labelSelector: selector }),
  };
}

export function coveredBy(scope: RoleScope, selector: string): Covered {
  const wanted = [scope.shard, scope.cluster, scope.namespace ?? '*', scope.name ?? '*'];
  const covers = (key: ObjectKey): boolean => key.split('|').every((part, index) => wanted[index] === '*' || wanted[index] === part);
  const selects = selectors[selector];
  return selects === undefined ? { covers } : { covers, selects };
}

export function rolePath(place: Place): string {
  return `${scopePath(place)}/${place.name}`;
}

export function labelsOf({ turn, tier }: Content): Readonly<Record<string, string>> {
  return tier === '' ? { turn } : { turn, tier };
}

export function role({ namespace, name }: Place, content: Content, resourceVersion?: string): KubeObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name, namespace, labels: labelsOf(content), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    rules: rulesOf(content),
  };
}

/** The part of an object that its writer chose, as text. */
export function saidBy({ metadata, ...object }: KubeObject): string {
  return JSON.stringify([Object.entries(metadata.labels ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)), object['rules']]);
}

function rulesOf({ rules: { turn, count } }: Content): unknown {
  return Array.from({ length: count }, (_, index) => ({ apiGroups: [''], resources: [`r${index}-${turn}`], verbs: ['get'] }));
}
