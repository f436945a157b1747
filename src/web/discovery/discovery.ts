/**
 * The served types in Kubernetes' discovery formats. Pure functions from a list of types to an
 * answer; `undefined` means that there is nothing at that path.
 *
 * A client reads the format from the answer's Content-Type. With its parameters g, v and as, the
 * answer is aggregated and complete. Without them it is the legacy list, and the client also
 * fetches every /apis/GROUP/VERSION.
 *
 * /api is answered even if there is no core type, because a client uses the aggregated form only if
 * both /api and /apis have it.
 *
 * https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
 */
import { plainType, serves, type ServedType } from '../../domain/catalogue/catalogue.js';
import { entryOf } from '../../domain/base/entry-of.js';
import { compareVersions } from '../../domain/syntax/version-order.js';
import { formatApiVersion } from '../../domain/resource.js';
import { firstServed, type Clause } from '../formats/accept.js';
import { verbs, type Verb } from '../kube/kube-request.js';

export type Answer = Readonly<{ contentType: string; body: string }>;

export type DiscoveryForm = 'v2' | 'v2beta1' | 'legacy';

/** The part of a type that discovery shows. `verbs`: left out if the type has all of them. */
export type Described = Pick<
  ServedType,
  'group' | 'resource' | 'kind' | 'singular' | 'shortNames' | 'categories' | 'namespaced' | 'versions'
> &
  Readonly<{ verbs?: readonly Verb[] }>;

/**
 * The kind of the file that `kubectl get -o yaml` prints. Before kubectl reads the objects in such
 * a file, it looks up this kind, and finds it only if there is a core group. The kind has no verbs,
 * so `kubectl api-resources` does not show it.
 */
const listKind: Described = { ...plainType({ group: '', resource: 'lists', identity: '' }, 'List', ['v1']), verbs: [] };

/** The form that an Accept header prefers; undefined if the header accepts none (406). */
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

/**
 * The types by group, then by version. Groups are in the order of their first types; the preferred
 * version comes first.
 */
export function byGroup<Type extends Described>(types: readonly Type[]): ReadonlyMap<string, ReadonlyMap<string, readonly Type[]>> {
  const groups = new Map<string, Map<string, Type[]>>();
  for (const type of types) {
    const versions = entryOf(groups, type.group, () => new Map<string, Type[]>());
    for (const { name } of type.versions) entryOf(versions, name, (): Type[] => []).push(type);
  }
  return new Map([...groups].map(([group, versions]) => [group, new Map([...versions].sort(([a], [b]) => compareVersions(a, b)))]));
}

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

/** Kubernetes leaves out empty lists. */
function namesOf({ shortNames, categories }: Described): object {
  return { ...(shortNames.length > 0 && { shortNames }), ...(categories.length > 0 && { categories }) };
}

function json(body: object): Answer {
  return { contentType: 'application/json', body: JSON.stringify(body) };
}

/** Ignores parameters other than `g`, `v` and `as`. */
function formOf({ type, parameters }: Clause): DiscoveryForm | undefined {
  if (!['application/json', 'application/*', '*/*'].includes(type)) return undefined;
  if (!parameters.has('as')) return 'legacy';
  if (parameters.get('as') !== 'APIGroupDiscoveryList' || parameters.get('g') !== 'apidiscovery.k8s.io') return undefined;
  const version = parameters.get('v');
  return version === 'v2' || version === 'v2beta1' ? version : undefined;
}

const kubernetes = { major: '1', minor: '36' };

/**
 * `/version`. Clients parse `gitVersion` as a version of Kubernetes to decide what the server
 * supports, so it names the Kubernetes release whose wire rules apply here. The version of this
 * software follows a '+', as in kcp.
 *
 * `version`: from package.json. Members that only make sense for a Go program are empty.
 */
export function versionAnswer(version: string): Answer {
  return json({
    ...kubernetes,
    gitVersion: `v${kubernetes.major}.${kubernetes.minor}.0+strata-v${version}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: '',
  });
}
