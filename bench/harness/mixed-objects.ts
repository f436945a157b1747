/**
 * The objects of the benchmark: several types, with labels, from 0.5 to 200 kB, mixed as replicas
 * of kcp's shards are.
 *
 *   share of objects   20 %         65 %        12 %         2.5 %         0.5 %
 *   size               0.5 to 1 kB  1 to 5 kB   5 to 20 kB   20 to 50 kB   50 to 200 kB
 *
 * They have 4 kB on average, and the few large ones hold a quarter of the bytes. The index of an
 * object determines all of it, the same in every run and process. Its text does not compress better
 * than schemas do. Members are in the order in which Go writes them. The marks of the name and of
 * the round occur nowhere else in the text. So readers find them by a search for bytes, without a
 * parser.
 */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

type MixedType = Readonly<{ group: string; version: string; resource: string; kind: string; content: 'spec' | 'rules' }>;

export const exportsType: MixedType = {
  group: 'apis.kcp.io',
  version: 'v1alpha2',
  resource: 'apiexports',
  kind: 'APIExport',
  content: 'spec',
};
const schemasType: MixedType = {
  group: 'apis.kcp.io',
  version: 'v1alpha1',
  resource: 'apiresourceschemas',
  kind: 'APIResourceSchema',
  content: 'spec',
};
const rolesType: MixedType = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: 'clusterroles',
  kind: 'ClusterRole',
  content: 'rules',
};

/** The share of each type, of twenty objects. */
const types: readonly (readonly [type: MixedType, share: number])[] = [
  [exportsType, 12],
  [schemasType, 5],
  [rolesType, 3],
];
export const mixedTypes = types.map(([type]) => type);

const kb = 1_000;
const sizes: readonly (readonly [share: number, fromBytes: number, toBytes: number])[] = [
  [0.2, 0.5 * kb, kb],
  [0.65, kb, 5 * kb],
  [0.12, 5 * kb, 20 * kb],
  [0.025, 20 * kb, 50 * kb],
  [0.005, 50 * kb, 200 * kb],
];

/** The text before the round. */
export const roundMark = '"bench.strata.dev/round":"';
/** The text before the index. */
export const nameMark = '"name":"bench-';
export const nameDigits = 7;

const shards = ['amber', 'birch', 'cedar'] as const;
const clustersPerShard = 64;
const words = [
  'string',
  'object',
  'status',
  'conditions',
  'replicas',
  'selector',
  'description',
  'x-kubernetes-list-type',
  'maxLength',
  'required',
];

/** `text`: the object in a round of changes, with a resourceVersion if one is given. */
export type MixedObject = Readonly<{
  type: MixedType;
  shard: string;
  cluster: string;
  name: string;
  text: (round: number, resourceVersion?: string) => string;
}>;

/** The collection of every list and watch of the benchmark that covers all shards and clusters. */
export const wildcardPath = collectionPath(exportsType);

/** An object of one shard, which pushes only this type. */
export function pushedMixedObject(shard: string, index: number, clusters = clustersPerShard): MixedObject {
  return mixedObject(index, { shard, type: exportsType, clusters });
}

export function mixedObject(index: number, of?: Readonly<{ shard: string; type: MixedType; clusters: number }>): MixedObject {
  const random = randomOf(index);
  const type = of?.type ?? typeAt(random());
  const bytes = sizeAt(random(), random());
  const shard = of?.shard ?? shards[index % shards.length]!;
  const cluster = clusterAt(shard, Math.floor(random() * (of?.clusters ?? clustersPerShard)));
  const name = `bench-${String(index).padStart(nameDigits, '0')}`;
  const digits = String(index).padStart(12, '0');
  const head = `{"apiVersion":"${type.group}/${type.version}","kind":"${type.kind}","metadata":{"annotations":{${roundMark}`;
  const labelled =
    `","kcp.io/cluster":"${cluster}","kcp.io/path":"root:bench:${cluster}","kcp.io/shard":"${shard}"},"creationTimestamp":"2026-08-07T09:00:00Z",` +
    `"generation":1,"labels":{"app":"app-${Math.floor(random() * 20)}","internal.kcp.io/replicate":"true","tier":"${random() < 0.1 ? 'gold' : 'plain'}"},` +
    `"name":"${name}"`;
  const uid = `,"uid":"5eed0000-0000-4000-8000-${digits}"},`;
  const rest = uid + contentOf(type, bytes - head.length - labelled.length - uid.length, random);
  const text = (round: number, resourceVersion = ''): string =>
    `${head}${round}${labelled}${resourceVersion === '' ? '' : `,"resourceVersion":"${resourceVersion}"`}${rest}`;
  return { type, shard, cluster, name, text };
}

export function collectionPath({ group, version, resource }: MixedType, shard = '%2A', cluster = '%2A'): string {
  return `/services/cache/shards/${shard}/clusters/${cluster}/apis/${group}/${version}/${resource}`;
}

export function mixedClusters(): readonly Readonly<{ shard: string; cluster: string }>[] {
  return shards.flatMap((shard) => Array.from({ length: clustersPerShard }, (_, at) => ({ shard, cluster: clusterAt(shard, at) })));
}

/** Writes one line for each object, in the format of the Go client. */
export async function writeMixedObjects(file: string, count: number): Promise<void> {
  await pipeline(function* () {
    for (let index = 0; index < count; index++) {
      const { type, shard, cluster, name, text } = mixedObject(index);
      yield `${index}\t${type.resource}\t${collectionPath(type, shard, cluster)}\t${name}\t${text(0)}\n`;
    }
  }, createWriteStream(file));
}

/** How many of the first `count` objects each resource has. */
export function countsByResource(count: number): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (let index = 0; index < count; index++) {
    const { resource } = typeAt(randomOf(index)());
    counts.set(resource, (counts.get(resource) ?? 0) + 1);
  }
  return counts;
}

function clusterAt(shard: string, at: number): string {
  return `${shard}-${String(at).padStart(2, '0')}`;
}

function typeAt(random: number): MixedType {
  let left = random * types.reduce((sum, [, share]) => sum + share, 0);
  return (types.find(([, share]) => (left -= share) < 0) ?? types[0]!)[0];
}

/** Within a class of sizes, small ones are more frequent. */
function sizeAt(which: number, where: number): number {
  let left = which;
  const [, from, to] = sizes.find(([share]) => (left -= share) < 0) ?? sizes[0]!;
  return Math.round(from * (to / from) ** where);
}

function contentOf({ content }: MixedType, bytes: number, random: () => number): string {
  const parts: string[] = [];
  for (let length = 0; length < bytes - 40; length += parts.at(-1)!.length + 1) {
    const id = Math.floor(random() * 2 ** 48).toString(36);
    const word = words[Math.floor(random() * words.length)]!;
    parts.push(
      content === 'spec'
        ? `{"title":"${word}-${id}","type":"${word}","note":"${id.slice(0, 4)} ${word} of ${id.slice(4)}"}`
        : `{"apiGroups":["${id}.example.io"],"resources":["${word}s"],"verbs":["get","list","watch"]}`,
    );
  }
  return content === 'spec' ? `"spec":{"resources":[${parts.join(',')}]}}` : `"rules":[${parts.join(',')}]}`;
}

/** mulberry32: a seed gives the same sequence of numbers everywhere. */
function randomOf(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
