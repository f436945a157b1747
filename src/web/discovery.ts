/**
 * Which types there are, in Kubernetes' discovery formats: pure functions from a list of types to an answer.
 *
 * A client goes by the Content-Type of the answer, not by what it asked for: with g, v and as it holds everything at once
 * (aggregated), bare it is the legacy list and the client fetches every /apis/GROUP/VERSION by itself. `undefined`
 * means that there is nothing at that path.
 *
 * /api is answered even when there is no core type, as is usual: only a client that finds both /api and /apis
 * aggregated uses them.
 * https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
 */
import { serves, type ServedType } from '../domain/catalogue.js';
import { entryOf } from '../domain/entry-of.js';
import { compareVersions } from '../domain/version-order.js';
import { formatApiVersion } from '../domain/resource.js';
import { firstServed, type Clause } from './accept.js';
import { verbs, type Verb } from './kube-request.js';

export type Answer = Readonly<{ contentType: string; body: string }>;

/** The format of the whole of /api or /apis. */
export type DiscoveryForm = 'v2' | 'v2beta1' | 'legacy';

/** What discovery says of a type. `verbs`: those it has, where they are not all. */
export type Described = Pick<
  ServedType,
  'group' | 'resource' | 'kind' | 'singular' | 'shortNames' | 'categories' | 'namespaced' | 'versions'
> &
  Readonly<{ verbs?: readonly Verb[] }>;

/**
 * The kind of the file that `kubectl get -o yaml` prints. kubectl looks up the kind of a file before it takes the objects out of it, and finds this one only where
 * the core group is. Nothing can be done with it, and `kubectl api-resources` does not show it.
 */
const listKind: Described = {
  group: '',
  resource: 'lists',
  kind: 'List',
  singular: 'list',
  shortNames: [],
  categories: [],
  namespaced: false,
  versions: [{ name: 'v1', columns: [] }],
  verbs: [],
};

/** The form an Accept header prefers; undefined when it accepts none of ours (406). */
export function parseDiscoveryForm(accept: string | undefined): DiscoveryForm | undefined {
  return firstServed(accept, formOf);
}

/** /api: the core group. */
export function coreVersions(types: readonly Described[], form: DiscoveryForm): Answer {
  const core = [listKind, ...types.filter(({ group }) => group === '')];
  if (form !== 'legacy') return aggregated(core, form);
  const versions = [...(byGroup(core).get('')?.keys() ?? [])];
  return json({ kind: 'APIVersions', apiVersion: 'v1', versions, serverAddressByClientCIDRs: [] });
}

/** /apis: every group but the core. */
export function apiGroups(types: readonly Described[], form: DiscoveryForm): Answer {
  const named = types.filter(({ group }) => group !== '');
  if (form !== 'legacy') return aggregated(named, form);
  return json({ kind: 'APIGroupList', apiVersion: 'v1', groups: [...byGroup(named)].map(groupOf) });
}

/** /apis/GROUP */
export function apiGroup(types: readonly Described[], group: string): Answer | undefined {
  const versions = byGroup(types.filter((type) => type.group === group)).get(group);
  return group === '' || versions === undefined ? undefined : json({ kind: 'APIGroup', apiVersion: 'v1', ...groupOf([group, versions]) });
}

/** /apis/GROUP/VERSION, and /api/v1 with the group ''. */
export function apiResources(types: readonly Described[], group: string, version: string): Answer | undefined {
  const served = servedAt([listKind, ...types], group, version);
  if (served.length === 0) return undefined;
  const resources = served.map((type) => ({
    name: type.resource,
    singularName: type.singular,
    namespaced: type.namespaced,
    kind: type.kind,
    verbs: type.verbs ?? verbs,
    ...namesOf(type),
  }));
  return json({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: formatApiVersion(group, version), resources });
}

/** What is served in each version of each group: groups in the order of the types that name them first, the preferred version first. */
export function byGroup<Type extends Described>(types: readonly Type[]): ReadonlyMap<string, ReadonlyMap<string, readonly Type[]>> {
  const groups = new Map<string, Map<string, Type[]>>();
  for (const type of types) {
    const versions = entryOf(groups, type.group, () => new Map<string, Type[]>());
    for (const { name } of type.versions) entryOf(versions, name, (): Type[] => []).push(type);
  }
  return new Map([...groups].map(([group, versions]) => [group, new Map([...versions].sort(([a], [b]) => compareVersions(a, b)))]));
}

/** The types of a group that are served in a version. */
export function servedAt<Type extends Described>(types: readonly Type[], group: string, version: string): readonly Type[] {
  return types.filter((type) => type.group === group && serves(type, version));
}

function aggregated(types: readonly Described[], form: 'v2' | 'v2beta1'): Answer {
  const items = [...byGroup(types)].map(([group, versions]) => ({
    metadata: { name: group, creationTimestamp: null },
    versions: [...versions].map(([version, served]) => ({
      version,
      resources: served.map((type) => aggregatedResource(type, version)),
      freshness: 'Current',
    })),
  }));
  const body = { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${form}`, metadata: {}, items };
  return { ...json(body), contentType: `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList` };
}

function aggregatedResource(type: Described, version: string): object {
  return {
    resource: type.resource,
    responseKind: { group: type.group, version, kind: type.kind },
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: type.singular,
    verbs: type.verbs ?? verbs,
    ...namesOf(type),
  };
}

function groupOf([group, served]: readonly [string, ReadonlyMap<string, unknown>]): object {
  const versions = [...served.keys()].map((version) => ({ groupVersion: formatApiVersion(group, version), version }));
  return { name: group, versions, preferredVersion: versions[0] };
}

/** Kubernetes leaves out what is empty. */
function namesOf({ shortNames, categories }: Described): object {
  return { ...(shortNames.length > 0 && { shortNames }), ...(categories.length > 0 && { categories }) };
}

function json(body: object): Answer {
  return { contentType: 'application/json', body: JSON.stringify(body) };
}

/** Parameters other than the three that name a form are ignored. */
function formOf({ type, parameters }: Clause): DiscoveryForm | undefined {
  if (!['application/json', 'application/*', '*/*'].includes(type)) return undefined;
  if (!parameters.has('as')) return 'legacy';
  if (parameters.get('as') !== 'APIGroupDiscoveryList' || parameters.get('g') !== 'apidiscovery.k8s.io') return undefined;
  const version = parameters.get('v');
  return version === 'v2' || version === 'v2beta1' ? version : undefined;
}
