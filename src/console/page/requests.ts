/**
 * The requests of the page to the cache that served it. Every error is a sentence for the user of
 * the page.
 */
import type { ObjectName } from './route.js';
import type { Overview, TypeView } from './overview.js';

export type Column = Readonly<{ name: string; type: string; priority: number }>;
export type Row = Readonly<{ cells: readonly unknown[]; object: Readonly<{ metadata: ObjectMetadata }> }>;
export type ObjectMetadata = Readonly<{ name: string; namespace?: string }>;
/** `continueWith`: '' after the last page. */
export type Page = Readonly<{ columns: readonly Column[]; rows: readonly Row[]; continueWith: string }>;

export type Wanted = Readonly<{ type: TypeView; shard: string; cluster: string; name: string }>;

const pageObjects = 200;
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

export async function fetchOverview(): Promise<Overview> {
  return (await (await request('/console/overview', 'application/json')).json()) as Overview;
}

/** One page of a list. `after`: the continue token of the page before it. */
export async function fetchPage({ type, shard, cluster, name }: Wanted, after: string, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ limit: String(pageObjects), includeObject: 'Metadata' });
  if (after !== '') query.set('continue', after);
  if (name !== '') query.set('fieldSelector', `metadata.name=${name}`);
  const answer = await request(`${pathOf(type, { shard, cluster })}?${query}`, table, signal);
  const { columnDefinitions, rows, metadata } = (await answer.json()) as {
    columnDefinitions: readonly Column[];
    rows: readonly Row[] | null;
    metadata: { continue?: string };
  };
  return { columns: columnDefinitions, rows: rows ?? [], continueWith: metadata.continue ?? '' };
}

/** The object as YAML, or as JSON if it is too long for YAML. */
export async function fetchObject(type: TypeView, { shard, cluster, namespace, name }: ObjectName, signal: AbortSignal): Promise<string> {
  const answer = await request(pathOf(type, { shard, cluster, namespace, name }), 'application/yaml, application/json', signal);
  const text = await answer.text();
  return answer.headers.get('content-type')?.startsWith('application/json') ? JSON.stringify(JSON.parse(text), null, 2) : text;
}

function pathOf(
  { group, version, resource, identity }: TypeView,
  { shard, cluster, namespace = '', name = '' }: Readonly<{ shard: string; cluster: string; namespace?: string; name?: string }>,
): string {
  const api = group === '' ? ['api', version] : ['apis', group, version];
  const inside = namespace === '' ? [] : ['namespaces', namespace];
  const type = identity === '' ? resource : `${resource}:${identity}`;
  const segments = ['shards', shard, 'clusters', cluster, ...api, ...inside, type, ...(name === '' ? [] : [name])];
  return `/console/objects/${segments.map(encodeURIComponent).join('/')}`;
}

async function request(path: string, accept: string, signal?: AbortSignal): Promise<Response> {
  const init = { headers: { accept }, ...(signal !== undefined && { signal }) };
  const answer = await fetch(path, init).catch((error: unknown) => {
    throw signal?.aborted === true ? error : new Error('the cache does not answer', { cause: error });
  });
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Error('this session has ended: run strata console for a new link');
  const status = (await answer.json().catch(() => undefined)) as { message?: string } | undefined;
  throw new Error(status?.message ?? `the cache answered ${answer.status}`);
}
