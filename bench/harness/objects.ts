/**
 * What the benchmark stores: APIExports of about 2.5 kB, spread over shards and logical clusters as kcp's replication
 * controller would send them (members in the order Go writes them, uid and creationTimestamp given).
 *
 * The index of an object gives its place and its whole text, so processes need to exchange no bodies.
 * The name's text occurs nowhere else in a body, so that a reader finds it with a search for bytes instead of a parser.
 */
const shards = ['amber', 'birch', 'cedar'] as const;
const clustersPerShard = 16;
const indexDigits = 6;
const bodyBytesMin = 2_500;

export const group = 'apis.kcp.io';
export const version = 'v1alpha2';
export const resource = 'apiexports';

export type Place = Readonly<{ shard: string; cluster: string }>;

/** Where every list and watch of the benchmark looks. The star is escaped as Go's clients do. */
export const wildcardPath = collectionPath('%2A', '%2A');

/** The text in front of the round in a body, once. */
export const roundMark = '"bench.strata.dev/round":"';
/** The text in front of the index in a body, once. */
export const nameMark = '"name":"export-';
export const nameDigits = indexDigits;

export function pathOf(index: number, place: Place = placeOf(index)): string {
  return `${collectionPathOf(index, place)}/${nameOf(index)}`;
}

export function collectionPathOf(index: number, { shard, cluster }: Place = placeOf(index)): string {
  return collectionPath(shard, cluster);
}

/** Every logical cluster of one shard. */
export function shardPath(shard: string): string {
  return collectionPath(shard, '%2A');
}

/** The place of an object that one shard pushes. */
export function placeOn(shard: string, index: number): Place {
  return { shard, cluster: clusterOf(shard, index) };
}

export function nameOf(index: number): string {
  return `export-${String(index).padStart(indexDigits, '0')}`;
}

/** The text of an object at a resourceVersion ('' for none) and in a round of changes; the long parts are made once. */
export function textOf(index: number, { shard, cluster }: Place = placeOf(index)): (resourceVersion: string, round: number) => string {
  const head = `{"apiVersion":"${group}/${version}","kind":"APIExport","metadata":{"annotations":{${roundMark}`;
  const place = `","kcp.io/cluster":"${cluster}","kcp.io/path":"root:bench:${cluster}","kcp.io/shard":"${shard}"},"creationTimestamp":"2026-08-07T09:00:00Z","generation":1,"name":"${nameOf(index)}"`;
  const digits = String(index).padStart(12, '0');
  const uid = `,"uid":"5eed0000-0000-4000-8000-${digits}"},"spec":{"identity":{"secretRef":{"namespace":"kcp-system","title":"${digits}"}},"resources":[`;
  const tail = `]},"status":{"identityHash":"${digits.repeat(5)}"}}`;
  const resources: string[] = [];
  for (let bytes = head.length + place.length + uid.length + tail.length; bytes < bodyBytesMin;) {
    const plural = `widgets${resources.length}`;
    const one = `{"group":"widgets.bench.strata.dev","name":"${plural}","schema":"v260807-${digits.slice(4)}.${plural}.widgets.bench.strata.dev","storage":{"crd":{}}}`;
    resources.push(one);
    bytes += one.length + 1;
  }
  const rest = uid + resources.join(',') + tail;
  return (resourceVersion, round) =>
    `${head}${round}${place}${resourceVersion === '' ? '' : `,"resourceVersion":"${resourceVersion}"`}${rest}`;
}

function placeOf(index: number): Place {
  const shard = shards[index % shards.length]!;
  return { shard, cluster: clusterOf(shard, Math.floor(index / shards.length)) };
}

function clusterOf(shard: string, count: number): string {
  return `${shard}-${String(count % clustersPerShard).padStart(2, '0')}`;
}

function collectionPath(shard: string, cluster: string): string {
  return `/services/cache/shards/${shard}/clusters/${cluster}/apis/${group}/${version}/${resource}`;
}
